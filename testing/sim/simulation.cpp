#include <holdfast/testing/sim/simulation.hpp>

#include <world.hpp>

#include <exception>
#include <sstream>

namespace holdfast::testing::sim {

result run(const plan& what, const run_options& options) {
    world everything{what, options.trace};
    auto& story = everything.story();
    try {
        everything.run();
    } catch (const std::exception& error) {
        story.log.violated("no surprises", "the core threw: ", error.what());
    }
    result outcome;
    outcome.invariant = story.log.invariant();
    outcome.message = story.log.message();
    outcome.hash = story.log.hash();
    outcome.events = story.events.taken();
    outcome.grants = everything.grants();
    outcome.faults = story.random.happened();
    outcome.trace = std::move(story.log.trace());
    return outcome;
}

std::string report(const plan& failing) {
    const auto outcome = run(failing, {.trace = true});
    std::ostringstream text;
    text << describe(failing) << '\n';
    for (const auto& line : outcome.trace) {
        text << line << '\n';
    }
    text << (outcome.ok() ? "no promise was broken" : outcome.invariant + ": " + outcome.message)
         << '\n';
    return text.str();
}

}  // namespace holdfast::testing::sim
