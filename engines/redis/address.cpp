#include <algorithm>
#include <array>
#include <charconv>
#include <common/validate.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <redis/address.hpp>
#include <string>
#include <utility>

#include <holdfast/error.hpp>

namespace holdfast::engines::redis {

namespace {

/// Takes one address apart; the parts of the grammar are its functions.
class parser {
public:
    parser(std::string_view scheme, std::string_view rest)
        : scheme_{scheme}, rest_{rest}, misplaced_{has_misplaced_user_info(rest)} {}

    [[nodiscard]] address parse(passwords wanted) {
        read_scheme();
        split();
        read_user_info();
        read_hosts();
        read_path();
        read_options();
        if (wanted == passwords::read) {
            read_passwords();
        }
        result_.text = shown_text(scheme_, result_);
        result_.identity = identity_text(scheme_, result_);
        return std::move(result_);
    }

private:
    using options = std::map<std::string, std::string, std::less<>>;

    static constexpr std::string_view user_info_rule =
        "in a user name or password write / as %2F, ? as %3F, # as %23, @ as %40, : as %3A and % as "
        "%25";

    /// A password with a character that should have been percent-encoded may turn up in any later part.
    static bool has_misplaced_user_info(std::string_view rest) {
        const auto start = std::min(rest.find_first_not_of('/'), rest.size());
        const auto authority_ends = std::min(rest.find_first_of("/?#", start), rest.size());
        const auto last = rest.rfind('@');
        return last != std::string_view::npos && last >= authority_ends;
    }

    /// Nothing of the address is repeated here but the names of options, and absolute paths: without
    /// the "@" that should follow it, a password may stand in the place of anything else.
    [[noreturn]] void refuse(const std::string& words) const {
        failure{errc::bad_configuration,
                misplaced_ ? words + "; " + std::string{user_info_rule} : words}
            .raise("store address " + scheme_ + "://…");
    }

    /// An option's name, unless it may be something else.
    [[nodiscard]] std::string option(std::string_view text) const {
        const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
            return (c >= 'a' && c <= 'z') || c == '_';
        });
        return plain && !misplaced_ ? "option \"" + std::string{text} + "\"" : "an option";
    }

    void read_scheme() {
        std::string_view kind = scheme_;
        if (kind.starts_with("rediss")) {
            result_.connection.tls.emplace();
            kind.remove_prefix(6);
        } else {
            kind.remove_prefix(std::min<std::size_t>(kind.size(), 5));
        }
        unix_ = kind == "+unix" && !result_.connection.tls;
        if (kind == "+sentinel") {
            result_.topology = topology_kind::sentinel;
        } else if (kind == "+cluster") {
            result_.topology = topology_kind::cluster;
        } else if (!kind.empty() && !unix_) {
            refuse(
                "the scheme is not known; write redis, rediss, redis+unix, redis+sentinel, "
                "rediss+sentinel, redis+cluster or rediss+cluster");
        }
    }

    void split() {
        if (!rest_.starts_with("//")) {
            refuse("\"//\" must follow the scheme: " + scheme_ + "://host:port");
        }
        std::string_view text = rest_.substr(2);
        if (text.find('#') != std::string_view::npos) {
            refuse("\"#\" has no meaning here; " + std::string{user_info_rule});
        }
        if (const auto mark = text.find('?'); mark != std::string_view::npos) {
            query_ = text.substr(mark + 1);
            text = text.substr(0, mark);
        }
        const auto slash = std::min(text.find('/'), text.size());
        path_ = text.substr(slash);
        hosts_ = text.substr(0, slash);
        if (const auto at = hosts_.rfind('@'); at != std::string_view::npos) {
            user_info_ = hosts_.substr(0, at);
            hosts_ = hosts_.substr(at + 1);
        }
        const bool in_path = path_.find('@') != std::string_view::npos;
        const bool after_colon = path_.find(':') < path_.rfind('@');
        if (in_path && (!unix_ || after_colon)) {
            refuse(
                "a user name and password stand before the host or path, and end with @; in a path "
                "write @ as %40");
        }
    }

    [[nodiscard]] static std::optional<std::string> decode(std::string_view text) {
        std::string decoded;
        for (std::size_t place = 0; place < text.size(); ++place) {
            if (text[place] != '%') {
                decoded += text[place];
                continue;
            }
            const std::string_view digits = text.substr(place + 1, 2);
            unsigned code = 0;
            const auto [end, error] =
                std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
            if (digits.size() != 2 || error != std::errc{} || end != digits.data() + 2) {
                return std::nullopt;
            }
            decoded += static_cast<char>(code);
            place += 2;
        }
        return decoded;
    }

    void read_user_info() {
        if (!user_info_) {
            return;
        }
        const auto colon = user_info_->find(':');
        const auto user = decode(user_info_->substr(0, colon));
        std::optional<std::string> password{std::in_place};
        if (colon != std::string_view::npos) {
            password = decode(user_info_->substr(colon + 1));
            password_in_address_ = true;
        }
        if (!user || !password) {
            refuse("a % in the user name or password is not followed by two hexadecimal digits; " +
                   std::string{user_info_rule});
        }
        result_.connection.login = {.user = *user, .password = *password};
    }

    void read_hosts() {
        if (unix_) {
            if (!hosts_.empty()) {
                refuse("a Unix socket is on no host; write redis+unix:///path/to/socket");
            }
            return;
        }
        std::string_view left = hosts_;
        for (bool more = true; more;) {
            const auto comma = left.find(',');
            result_.nodes.push_back(read_node(left.substr(0, comma)));
            more = comma != std::string_view::npos;
            left = more ? left.substr(comma + 1) : std::string_view{};
        }
        if (result_.topology == topology_kind::standalone && result_.nodes.size() > 1) {
            refuse("several hosts: write redis+sentinel:// or redis+cluster://");
        }
    }

    [[nodiscard]] node_address read_node(std::string_view text) const {
        node_address node;
        node.port = result_.topology == topology_kind::sentinel ? 26379 : 6379;
        const bool bracketed = text.starts_with('[');
        const auto host_ends = bracketed ? text.find(']') : text.find(':');
        if (bracketed && host_ends == std::string_view::npos) {
            refuse("\"]\" is missing after an IPv6 address");
        }
        node.host = bracketed ? text.substr(1, host_ends - 1) : text.substr(0, host_ends);
        const std::string_view after =
            text.substr(std::min(text.size(), bracketed ? host_ends + 1 : host_ends));
        if ((!after.empty() && !after.starts_with(':')) ||
            after.find(':', 1) != std::string_view::npos) {
            refuse("this is not a host and a port; write host:port, or [address]:port for IPv6");
        }
        if (node.host.empty()) {
            refuse("a host is missing; write " + scheme_ + "://host:port");
        }
        if (after.empty()) {
            return node;
        }
        const auto port = number(after.substr(1));
        if (!port || *port == 0 || *port > 65'535) {
            refuse("the port must be from 1 to 65535; after a password write @ and the host");
        }
        node.port = static_cast<std::uint16_t>(*port);
        return node;
    }

    [[nodiscard]] static std::optional<std::uint32_t> number(std::string_view text) {
        std::uint32_t result{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
        if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
            return std::nullopt;
        }
        return result;
    }

    void read_path() {
        std::string_view path = path_;
        if (unix_) {
            const auto file = decode(path);
            if (!file || file->size() < 2) {
                refuse("the socket's path is missing; write redis+unix:///path/to/socket");
            }
            result_.nodes.push_back({.host = {}, .port = 0, .path = *file});
            return;
        }
        path.remove_prefix(path.empty() ? 0 : 1);
        if (result_.topology == topology_kind::sentinel) {
            const auto slash = std::min(path.find('/'), path.size());
            const auto service = decode(path.substr(0, slash));
            if (!service || service->empty()) {
                refuse("the service's name is missing; write " + scheme_ + "://host,host,host/service");
            }
            result_.service = *service;
            path = path.substr(std::min(path.size(), slash + 1));
        }
        if (!path.empty()) {
            read_database(path);
        }
    }

    void read_database(std::string_view text) {
        const auto database = number(text);
        if (!database) {
            refuse("the database must be a number");
        }
        if (result_.topology == topology_kind::cluster && *database != 0) {
            refuse("a cluster has only database 0; leave the number out");
        }
        result_.connection.database = *database;
    }

    void read_options() {
        std::string_view left = query_;
        while (!left.empty()) {
            const auto mark = std::min(left.find('&'), left.size());
            read_option(left.substr(0, mark));
            left = left.substr(std::min(left.size(), mark + 1));
        }
        const bool key_alone = result_.connection.tls && !result_.connection.tls->key_file.empty() &&
                               result_.connection.tls->certificate_file.empty();
        if (key_alone) {
            refuse("key is of no use without cert; give cert=FILE too");
        }
    }

    void read_option(std::string_view text) {
        const auto equals = text.find('=');
        const std::string name{text.substr(0, equals)};
        const auto value =
            equals == std::string_view::npos ? std::nullopt : decode(text.substr(equals + 1));
        if (!value) {
            refuse("options must be written name=value, with % as %25 in the value");
        }
        if (!given_.emplace(name, *value).second) {
            refuse(option(name) + " is given twice");
        }
        if (!set_tls_option(name, *value) && !set_login_option(name) &&
            !set_other_option(name, *value)) {
            const std::string elsewhere = name == "sharded"               ? "redis+cluster://"
                                          : name == "database"            ? "redis+unix://"
                                          : name.starts_with("sentinel_") ? "redis+sentinel://"
                                                                          : "";
            if (!elsewhere.empty() && name.size() < 24) {
                refuse(option(name) + " is one of " + elsewhere + " only");
            }
            refuse(option(name) +
                   " is not known; known are ca, cert, key, server_name, verify, user, password_file, "
                   "password_env, sentinel_user, sentinel_password_file, sentinel_password_env, "
                   "connect_timeout, prefix, sharded, fenced, database (Unix sockets)");
        }
    }

    [[nodiscard]] bool set_tls_option(const std::string& name, const std::string& value) {
        constexpr std::array names{"ca", "cert", "key", "server_name", "verify"};
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            return false;
        }
        auto& tls = result_.connection.tls;
        if (!tls) {
            refuse("option \"" + name + "\" needs TLS: write rediss instead of redis");
        }
        if (value.empty()) {
            refuse("option \"" + name + "\" is empty");
        }
        // Absolute: they are read again, and the working directory may be another one by then.
        if (name == "ca") {
            tls->ca_file = std::filesystem::absolute(value).string();
        } else if (name == "cert") {
            tls->certificate_file = std::filesystem::absolute(value).string();
        } else if (name == "key") {
            tls->key_file = std::filesystem::absolute(value).string();
        } else if (name == "server_name") {
            tls->server_name = value;
        } else {
            tls->verify = one_of(name, value, {"yes", "no"}) == 0;
        }
        return true;
    }

    /// The values are used when all options are known.
    [[nodiscard]] bool set_login_option(const std::string& name) const {
        constexpr std::array names{"user", "password_file", "password_env"};
        constexpr std::string_view for_sentinel = "sentinel_";
        std::string_view plain = name;
        if (plain.starts_with(for_sentinel)) {
            plain.remove_prefix(for_sentinel.size());
            if (result_.topology != topology_kind::sentinel) {
                return false;
            }
        }
        return std::find(names.begin(), names.end(), plain) != names.end();
    }

    [[nodiscard]] bool set_other_option(const std::string& name, const std::string& value) {
        if (name == "connect_timeout") {
            const auto milliseconds = number(value);
            if (!milliseconds || *milliseconds == 0 || *milliseconds > 600'000) {
                refuse("connect_timeout must be from 1 to 600000 (milliseconds)");
            }
            result_.connection.connect_timeout = std::chrono::milliseconds{*milliseconds};
        } else if (name == "prefix") {
            read_prefix(value);
        } else if (name == "sharded" && result_.topology == topology_kind::cluster) {
            constexpr std::array choices{address::sharding::automatic, address::sharding::on,
                                         address::sharding::off};
            result_.sharded = choices[one_of(name, value, {"auto", "on", "off"})];
        } else if (name == "fenced") {
            static_cast<void>(one_of(name, value, {"redisson"}));
            result_.redisson_tokens = true;
        } else if (name == "database" && unix_) {
            read_database(value);
        } else {
            return false;
        }
        return true;
    }

    /// It becomes the beginning of names, so it has their rules.
    void read_prefix(const std::string& value) {
        constexpr std::size_t longest = 256;
        if (value.size() > longest) {
            refuse("option \"prefix\" has " + std::to_string(value.size()) + " bytes; at most " +
                   std::to_string(longest) + " are allowed");
        }
        if (const auto flaw = flaw_in(value); !flaw.empty()) {
            refuse("option \"prefix\" " + std::string{flaw});
        }
        result_.prefix = value;
    }

    [[nodiscard]] std::size_t one_of(const std::string& name, const std::string& value,
                                     std::initializer_list<std::string_view> choices) const {
        std::string words;
        for (const std::string_view* each = choices.begin(); each != choices.end(); ++each) {
            if (*each == value) {
                return static_cast<std::size_t>(each - choices.begin());
            }
            words += words.empty() ? "" : " or ";
            words += *each;
        }
        refuse("option \"" + name + "\" must be " + words);
    }

    void read_passwords() {
        credentials& login = result_.connection.login;
        read_login("", login);
        if (result_.topology == topology_kind::sentinel) {
            read_login("sentinel_", result_.sentinel_login);
        }
        const bool none_given = !password_in_address_ && !given_.contains("password_file") &&
                                !given_.contains("password_env");
        const auto password = none_given ? inherited("HOLDFAST_REDIS_PASSWORD") : std::nullopt;
        const auto user =
            none_given && login.user.empty() ? inherited("HOLDFAST_REDIS_USER") : std::nullopt;
        if (password) {
            login.password = *password;
            login.user = user.value_or(login.user);
        }
    }

    /// A script whose own variable was not set must not log in without a password.
    [[nodiscard]] std::optional<std::string> inherited(const std::string& variable) const {
        const char* value = std::getenv(variable.c_str());
        if (value == nullptr) {
            return std::nullopt;
        }
        if (*value == '\0') {
            refuse(variable + " is set, but empty; give it a value, or unset " + variable);
        }
        return value;
    }

    void read_login(const std::string& whose, credentials& into) {
        if (const auto user = given_.find(whose + "user"); user != given_.end()) {
            if (!into.user.empty()) {
                refuse("the user is named twice, before the @ and as an option");
            }
            into.user = user->second;
        }
        const auto file = given_.find(whose + "password_file");
        const auto variable = given_.find(whose + "password_env");
        const bool in_address = whose.empty() && password_in_address_;
        if ((file != given_.end()) + (variable != given_.end()) + in_address > 1) {
            refuse("the password is given in more than one way");
        }
        if (file != given_.end()) {
            // Absolute: it is read again, and the working directory may be another one by then.
            into.password_file = std::filesystem::absolute(file->second).string();
            into.password = password_from_file(whose + "password_file", into.password_file);
        }
        if (variable != given_.end()) {
            const char* value = std::getenv(variable->second.c_str());
            if (value == nullptr) {
                refuse("the environment variable that " + whose + "password_env names is not set");
            }
            into.password = value;
        }
    }

    [[nodiscard]] std::string password_from_file(const std::string& name,
                                                 const std::string& path) const {
        auto read = read_password_file(path);
        if (!read.problem.empty()) {
            refuse("the password cannot be read from " + shown_file(name) + ": " + read.problem);
        }
        return std::move(read.password);
    }

    /// A path may be shown. What does not begin like one may be the password itself: only the directory
    /// is named in which a file of that name was looked for.
    [[nodiscard]] std::string shown_file(const std::string& name) const {
        const auto& written = given_.at(name);
        if (misplaced_) {
            return name;
        }
        return written.starts_with('/') ? name + "=" + written
                                        : name + ", in " + std::filesystem::current_path().string();
    }

    std::string scheme_;
    std::string_view rest_;
    bool misplaced_;
    bool unix_{};
    std::optional<std::string_view> user_info_;
    std::string_view hosts_;
    std::string_view path_;
    std::string_view query_;
    bool password_in_address_{};
    options given_;
    address result_;
};

}  // namespace

address parse_address(std::string_view scheme, std::string_view rest, passwords wanted) {
    return parser{scheme, rest}.parse(wanted);
}

}  // namespace holdfast::engines::redis
