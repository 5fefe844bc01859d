// Checks of numbers on cpprunctl's command line. CLI11's own validators print "not in range
// 0.000000 to 17976931..." for a wrong number.
#pragma once

namespace CLI {
class Validator;
}

namespace cpprun::ctl {

CLI::Validator above_zero();
CLI::Validator from_zero();
CLI::Validator within(double least, double most);

}  // namespace cpprun::ctl
