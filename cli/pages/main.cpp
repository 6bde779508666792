#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "pages.hpp"

namespace {

[[nodiscard]] std::string read(const std::string& path) {
    std::ifstream file{path};
    if (!file) {
        throw std::runtime_error{"cannot read " + path};
    }
    return {std::istreambuf_iterator<char>{file}, {}};
}

void write(const std::string& path, const std::string& text) {
    std::ofstream file{path};
    if (!(file << text << std::flush)) {
        throw std::runtime_error{"cannot write " + path};
    }
}

}  // namespace

/// `holdfast_pages TEMPLATES OUTPUT`: writes the man page and the completions into OUTPUT.
int main(int argc, char** argv) {
    try {
        if (argc != 3) {
            throw std::runtime_error{"usage: holdfast_pages TEMPLATES OUTPUT"};
        }
        const std::string templates = argv[1];
        const std::string output = argv[2];
        write(output + "/holdfast.1", holdfast::cli::man_page());
        for (const std::string shell : {"bash", "zsh", "fish"}) {
            const auto name = "/holdfast." + shell;
            write(output + name, holdfast::cli::completions(shell, read(templates + name + ".in")));
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << "holdfast_pages: " << error.what() << "\n";
        return 1;
    }
}
