// The store client, by the name that training programs include it by. Tools without the worker SDK
// use it too, so it stands with the clients of the rendezvous.
#pragma once

#include "rendezvous/client/store/store_client.hpp"
