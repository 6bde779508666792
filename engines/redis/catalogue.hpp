#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <holdfast/engine.hpp>
#include <redis/net/connection.hpp>
#include <redis/topology/router.hpp>
#include <redis/translation.hpp>

/// What is in the store, for people: holders with their cards, and lists of names. Several requests
/// each, all by the same deadline.
namespace holdfast::engines::redis {

struct catalogue {
    router& servers;
    const dialect& words;
    /// Runs a script, as the engine does.
    std::function<void(script_call, std::uint16_t slot, call limits,
                       std::function<void(connection::result)>)>
        run;
};

/// One name, with its holders' cards.
void inspect_name(const std::shared_ptr<const catalogue>& from, const std::string& name, call limits,
                  completion<inspect_reply> done);

/// Goes through all keys with SCAN, a few at a time, and describes the locks among them. A page may end
/// before it is full: see `list_reply`.
void list_names(const std::shared_ptr<const catalogue>& from, list_request request, call limits,
                completion<list_reply> done);

}  // namespace holdfast::engines::redis
