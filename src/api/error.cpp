#include <holdfast/error.hpp>

namespace holdfast {
inline namespace v0 {

namespace {

class category final : public std::error_category {
public:
    [[nodiscard]] const char* name() const noexcept override { return "holdfast"; }

    [[nodiscard]] std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
            case errc::busy:
                return "busy";
            case errc::store_unavailable:
                return "store unavailable";
            case errc::outcome_unknown:
                return "outcome unknown";
            case errc::lost:
                return "lost";
            case errc::revoked:
                return "revoked";
            case errc::max_hold_exceeded:
                return "held for longer than max_hold";
            case errc::not_owner:
                return "not the owner";
            case errc::unauthorised:
                return "not authorised";
            case errc::guarantee_not_met:
                return "guarantee not met";
            case errc::invalid_name:
                return "invalid lock name";
            case errc::invalid_argument:
                return "invalid argument";
            case errc::bad_configuration:
                return "bad configuration";
            case errc::wrong_kind:
                return "name in use for another kind of lock";
            case errc::forked:
                return "client used after fork";
            case errc::shut_down:
                return "shut down";
            case errc::cancelled:
                return "cancelled";
            case errc::store_error:
                return "store error";
        }
        return value == 0 ? "no error" : "unknown holdfast error " + std::to_string(value);
    }

    [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
        switch (static_cast<errc>(value)) {
            case errc::busy:
                return std::errc::resource_unavailable_try_again;
            case errc::store_unavailable:
                return std::errc::host_unreachable;
            case errc::outcome_unknown:
                return std::errc::timed_out;
            case errc::not_owner:
            case errc::unauthorised:
                return std::errc::permission_denied;
            case errc::invalid_name:
            case errc::invalid_argument:
                return std::errc::invalid_argument;
            case errc::guarantee_not_met:
                return std::errc::not_supported;
            case errc::cancelled:
                return std::errc::operation_canceled;
            default:
                return {value, *this};
        }
    }
};

}  // namespace

const std::error_category& error_category() noexcept {
    static const category instance;
    return instance;
}

std::error_code make_error_code(errc code) noexcept {
    return {static_cast<int>(code), error_category()};
}

void failure::raise(const std::string& subject) const {
    // An address such as `memory:` ends in the colon that follows it.
    std::string text = subject.ends_with(':') ? subject.substr(0, subject.size() - 1) : subject;
    if (!detail.empty()) {
        text += ": " + detail;
    }
    // The detail may be the text of another error, which ends in the same words.
    const std::string words = ": " + make_error_code(code).message();
    while (text.ends_with(words)) {
        text.resize(text.size() - words.size());
    }
    throw std::system_error{code, text};
}

}  // namespace v0
}  // namespace holdfast
