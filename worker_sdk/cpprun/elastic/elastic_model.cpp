#include "cpprun/elastic/elastic_model.hpp"

#include "cpprun/elastic/elastic_runner.hpp"

namespace cpprun::detail {

ElasticModel::ElasticModel(ElasticRunner& runner) : runner_(runner) { runner_.add_model(*this); }
ElasticModel::~ElasticModel() { runner_.remove_model(*this); }

void ElasticModel::bind_in_order() { runner_.bind_model(*this); }

}  // namespace cpprun::detail
