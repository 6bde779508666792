#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <holdfast/engine.hpp>

namespace holdfast::testing {

/// An engine that passes all calls on to another engine, and offers the same abilities. A test derives
/// from this class, and overrides the calls that shall differ.
class forwarding_engine : public engines::engine {
public:
    explicit forwarding_engine(std::unique_ptr<engines::engine> inner) : inner_{std::move(inner)} {}

    [[nodiscard]] const engines::guarantees& promises() const noexcept override {
        return inner_->promises();
    }
    [[nodiscard]] engines::abilities offers() noexcept override { return inner_->offers(); }
    [[nodiscard]] const std::string& address() const noexcept override { return inner_->address(); }
    [[nodiscard]] std::string store_identity() const override { return inner_->store_identity(); }
    void attach(engines::client_callbacks callbacks) override { inner_->attach(std::move(callbacks)); }
    void acquire(engines::acquire_request request, engines::call terms,
                 engines::completion<engines::acquire_reply> done) override {
        inner_->acquire(std::move(request), terms, std::move(done));
    }
    void renew(std::vector<engines::renew_request> batch, engines::call terms,
               engines::completion<std::vector<engines::renew_reply>> done) override {
        inner_->renew(std::move(batch), terms, std::move(done));
    }
    void release(engines::release_request request, engines::call terms,
                 engines::completion<engines::release_reply> done) override {
        inner_->release(std::move(request), terms, std::move(done));
    }

protected:
    [[nodiscard]] engines::engine& inner() const noexcept { return *inner_; }

private:
    std::unique_ptr<engines::engine> inner_;
};

}  // namespace holdfast::testing
