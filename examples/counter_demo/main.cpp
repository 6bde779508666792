// What a lock is for, and what it takes to be safe: seen, not told.

#include "story.hpp"

#include <exception>
#include <iostream>

int main() {
    try {
        const bool lost_updates = demo::without_a_lock();
        const bool exact = demo::with_a_lock();
        const bool fenced = demo::a_holder_that_is_stopped();
        if (lost_updates && exact && fenced) {
            std::cout << "All of it came true: updates were lost without the lock, none with it, and a "
                         "holder that\n"
                         "came too late knew it and was refused.\n";
            return 0;
        }
        std::cout << "This did not go as it should:" << (lost_updates ? "" : " (1) no update was lost")
                  << (exact ? "" : " (2) the count is wrong")
                  << (fenced ? "" : " (3) the story of the stopped holder") << '\n';
    } catch (const std::exception& error) {
        std::cerr << "demo: " << error.what() << '\n';
    }
    return 1;
}
