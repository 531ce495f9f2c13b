// Work divided among threads in numbered pieces, which are taken in order.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace metricboost {

// Calls run(piece, worker) for every piece. Workers are numbered from 0. An exception in a piece is
// thrown again after all threads have ended.
template <typename Run>
void for_each_piece(std::size_t pieces, std::size_t threads, Run run) {
    if (threads > pieces) threads = pieces;
    if (threads <= 1) {
        for (std::size_t piece = 0; piece < pieces; ++piece) run(piece, 0);
        return;
    }
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failing;
    const auto work = [&](std::size_t worker) {
        try {
            for (std::size_t piece = next++; piece < pieces; piece = next++) run(piece, worker);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(failing);
            failure = std::current_exception();
            next = pieces;
        }
    };
    std::vector<std::thread> others;
    others.reserve(threads - 1);
    try {
        for (std::size_t worker = 1; worker < threads; ++worker) others.emplace_back(work, worker);
    } catch (const std::system_error &) {
        // No more threads can be started. The existing threads do all of the work.
    }
    work(0);
    for (auto &thread : others) thread.join();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace metricboost
