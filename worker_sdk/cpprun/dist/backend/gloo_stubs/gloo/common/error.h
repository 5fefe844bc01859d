// Stands in for Gloo's header of this name: c10d's header wants the file, but nothing out of it.
#pragma once
