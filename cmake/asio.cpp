// Compiles Asio; all other translation units include only its declarations.
#include <boost/asio/impl/src.hpp>
