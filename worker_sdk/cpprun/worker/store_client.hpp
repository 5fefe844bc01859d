/// @file
/// The store client, under the path that training programs include. It lives in rendezvous/client,
/// because tools without the worker SDK use it too.
#pragma once

#include "rendezvous/client/store/store_client.hpp"
