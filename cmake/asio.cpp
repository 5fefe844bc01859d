// The one translation unit that holds Asio itself; everybody else only sees declarations.
#include <boost/asio/impl/src.hpp>
