#include "exit_code.hpp"

#include <exception>
#include <holdfast/error.hpp>

namespace holdfast::cli {

exit_code exit_code_for(const std::error_code& error) noexcept {
    if (error.category() != error_category()) {
        return exit_code::internal;
    }
    switch (static_cast<errc>(error.value())) {
        case errc::busy:
            return exit_code::not_acquired;
        case errc::store_unavailable:
        case errc::outcome_unknown:
            return exit_code::unavailable;
        case errc::lost:
        case errc::revoked:
        case errc::max_hold_exceeded:
        case errc::not_owner:
            return exit_code::lost;
        case errc::unauthorised:
            return exit_code::unauthorised;
        case errc::guarantee_not_met:
        case errc::bad_configuration:
        case errc::wrong_kind:
            return exit_code::configuration;
        case errc::invalid_name:
        case errc::invalid_argument:
            return exit_code::usage;
        case errc::forked:
        case errc::shut_down:
        case errc::cancelled:
        case errc::store_error:
            break;
    }
    return exit_code::internal;
}

problem describe_current_exception() {
    try {
        throw;
    } catch (const stop_program& stop) {
        return {stop.code(), stop.what()};
    } catch (const std::system_error& error) {
        return {exit_code_for(error.code()), error.what()};
    } catch (const std::exception& error) {
        return {exit_code::internal, error.what()};
    } catch (...) {
        return {exit_code::internal, "something unexpected happened"};
    }
}

}  // namespace holdfast::cli
