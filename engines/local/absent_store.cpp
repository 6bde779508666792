#include <local/absent_store.hpp>

#include <utility>

namespace holdfast::engines::local {

namespace {

class absent_store final : public engine, public operators_view, public examination, public latches {
public:
    absent_store(const std::string& directory, guarantees promises)
        : address_{"local:" + directory}, promises_{std::move(promises)} {}

    [[nodiscard]] const guarantees& promises() const noexcept override { return promises_; }
    [[nodiscard]] const std::string& address() const noexcept override { return address_; }
    [[nodiscard]] abilities offers() noexcept override {
        return {.operators = this, .examination = this, .latches = this};
    }

    void acquire(acquire_request, call, completion<acquire_reply> done) override {
        refuse(acquire_reply{}, done);
    }
    void renew(std::vector<renew_request> batch, call,
               completion<std::vector<renew_reply>> done) override {
        renew_reply gone;
        gone.result = renew_reply::outcome::gone;
        gone.error = {errc::lost, "the store is not there"};
        done(std::vector<renew_reply>(batch.size(), gone));
    }
    void release(release_request, call, completion<release_reply> done) override {
        release_reply reply;
        reply.result = release_reply::outcome::gone;
        done(std::move(reply));
    }
    void revoke(revoke_request, call, completion<revoke_reply> done) override {
        revoke_reply reply;
        reply.result = revoke_reply::outcome::gone;
        done(std::move(reply));
    }
    void inspect(std::string name, call, completion<inspect_reply> done) override {
        inspect_reply reply;
        reply.info.name = std::move(name);
        done(std::move(reply));
    }
    void list(list_request, call, completion<list_reply> done) override { done({}); }
    void latch(latch_request, call, completion<latch_reply> done) override {
        refuse(latch_reply{}, done);
    }
    void examine(call, completion<examine_reply> done) override {
        examine_reply reply;
        reply.findings.push_back({finding::severity::fact,
                                  {},
                                  "nobody has used this store yet; it is made when a lock is taken"});
        done(std::move(reply));
    }

private:
    template <class Reply>
    static void refuse(Reply reply, const completion<Reply>& done) {
        reply.error = {errc::bad_configuration, "the store is not there, and this client only looks"};
        done(std::move(reply));
    }

    const std::string address_;
    const guarantees promises_;
};

}  // namespace

std::unique_ptr<engine> make_absent_store(const std::string& directory, guarantees promises) {
    return std::make_unique<absent_store>(directory, std::move(promises));
}

}  // namespace holdfast::engines::local
