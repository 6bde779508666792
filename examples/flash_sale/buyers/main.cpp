// A crowd of buyers: all of them connect, then all of them buy at once, each as often as it is told to.
// Writes a line for every purchase: when it began and how long it took (µs since the start, µs), how it
// ended (sold, sold_out, failed), how many of its requests went wrong before.

#include "crowd.hpp"

#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>

int main(int count, char** words) {
    CLI::App program{"Many buyers at once."};
    flash_sale::crowd_options options;
    std::string output;
    std::int64_t seconds = 60;
    program.add_option("--port", options.port, "of the shop on 127.0.0.1")->required();
    program.add_option("--path", options.path, "what to ask for")->required();
    program.add_option("--buyers", options.buyers, "at the same time")->capture_default_str();
    program.add_option("--tries", options.tries, "purchases of each buyer, one after the other")
        ->capture_default_str();
    program.add_option("--tag", options.tag, "put before every request's id");
    program.add_option("--deadline", seconds, "seconds for all of it")->capture_default_str();
    program.add_option("--output", output, "where the lines go")->required();
    CLI11_PARSE(program, count, words);
    options.deadline = std::chrono::seconds{seconds};
    try {
        const auto purchases = flash_sale::buy(options, [] { std::cout << "go" << std::endl; });
        std::ofstream file{output};
        for (const auto& one : purchases) {
            file << one.begin.count() << ' ' << one.took.count() << ' ' << to_string(one.end) << ' '
                 << one.failures << '\n';
        }
        if (!file.flush()) {
            throw std::runtime_error{"cannot write " + output};
        }
    } catch (const std::exception& error) {
        std::cerr << "flash_sale_buyers: " << error.what() << '\n';
        return 1;
    }
    return 0;
}
