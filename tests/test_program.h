// SPDX-License-Identifier: Apache-2.0
// One program holds all tests of a folder: each source ends with SHARDLENS_TEST(Class), and is run
// as `program tst_source [QtTest's arguments]`. Sources are in a namespace of their own name, so
// that they can be compiled together.
#pragma once

#include <QTest>
#ifdef QT_WIDGETS_LIB
#include <QApplication>
#else
#include <QCoreApplication>
#endif

namespace shardlens::test {

/// Under sanitizers a test repeats less: they look for what code does to memory, not for numbers.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

#ifdef QT_WIDGETS_LIB
using TestApplication = QApplication;
#else
using TestApplication = QCoreApplication;
#endif

/// Makes the application and runs the test class; the exit code.
using RunTest = int (*)(int argc, char** argv);

/// Adds the test of a source file to those of the program.
struct RegisteredTest {
    RegisteredTest(const char* source, RunTest run);
};

template <typename Test, typename Application = TestApplication>
int runTest(int argc, char** argv) {
    QCoreApplication::setAttribute(Qt::AA_Use96Dpi); // as QTEST_MAIN does: sizes do not vary
    Application application(argc, argv);
    Test test;
    return QTest::qExec(&test, argc, argv);
}

} // namespace shardlens::test

/// Ends a test function, or a row of its data, under sanitizers if its job is a large one: smaller
/// ones run the same code.
#define SHARDLENS_SKIP_LARGE(large)                                                                \
    do {                                                                                           \
        if (shardlens::test::kSanitized && (large))                                                \
            QSKIP("large jobs are run without sanitizers");                                        \
    } while (false)

/// SHARDLENS_TEST(Class) or SHARDLENS_TEST(Class, Application).
#define SHARDLENS_TEST(...)                                                                        \
    const shardlens::test::RegisteredTest registeredTest(__FILE__,                                 \
                                                         &shardlens::test::runTest<__VA_ARGS__>);
