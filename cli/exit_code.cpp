#include "exit_code.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>

namespace holdfast::cli {

std::string_view to_word(exit_code code) noexcept {
    switch (code) {
        case exit_code::success:
            return "success";
        case exit_code::usage:
            return "usage";
        case exit_code::unavailable:
            return "unavailable";
        case exit_code::internal:
            break;
        case exit_code::resources:
            return "resources";
        case exit_code::store_error:
            return "store_error";
        case exit_code::output:
            return "output";
        case exit_code::not_acquired:
            return "not_acquired";
        case exit_code::lost:
            return "lost";
        case exit_code::unauthorised:
            return "unauthorised";
        case exit_code::configuration:
            return "configuration";
        case exit_code::not_executable:
            return "not_executable";
        case exit_code::not_found:
            return "not_found";
    }
    return "internal";
}

namespace {

constexpr std::string_view too_little_memory =
    "too little memory, see ulimit -v and the limits of the container";

/// Where to look when this host has no more of something; empty for other errors.
[[nodiscard]] std::string_view hint_for(const std::error_code& error) noexcept {
    if (error == std::errc::too_many_files_open || error == std::errc::too_many_files_open_in_system) {
        return "too few file descriptors, see ulimit -n";
    }
    if (error == std::errc::resource_unavailable_try_again) {
        return "too few processes or threads, see ulimit -u and the limits of the container";
    }
    return error == std::errc::not_enough_memory ? too_little_memory : "";
}

[[nodiscard]] std::string describe(const std::system_error& error) {
    const bool from_library = error.code().category() == error_category();
    const auto hint = from_library ? std::string_view{} : hint_for(error.code());
    return hint.empty() ? error.what() : fmt::format("this host has {} ({})", hint, error.what());
}

}  // namespace

exit_code exit_code_for(const std::error_code& error) noexcept {
    if (error.category() != error_category()) {
        return hint_for(error).empty() ? exit_code::internal : exit_code::resources;
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
        case errc::store_error:
            return exit_code::store_error;
        case errc::forked:
        case errc::shut_down:
        case errc::cancelled:
            break;
    }
    return exit_code::internal;
}

failure failure_behind(const std::system_error& error) {
    const bool from_library = error.code().category() == error_category();
    return {from_library ? static_cast<errc>(error.code().value()) : errc::outcome_unknown,
            error.what()};
}

problem describe_current_exception() {
    try {
        throw;
    } catch (const stop_program& stop) {
        return {stop.code(), stop.what()};
    } catch (const std::system_error& error) {
        return {exit_code_for(error.code()), describe(error)};
    } catch (const std::bad_alloc&) {
        return {exit_code::resources, fmt::format("this host has {}", too_little_memory)};
    } catch (const std::exception& error) {
        return {exit_code::internal, error.what()};
    } catch (...) {
        return {exit_code::internal, "something unexpected happened"};
    }
}

}  // namespace holdfast::cli
