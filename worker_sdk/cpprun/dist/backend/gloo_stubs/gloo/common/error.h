// Replaces Gloo's header of this name. c10d's header includes it but uses none of its declarations.
#pragma once
