// SPDX-License-Identifier: Apache-2.0
// Real model files opened in the window: it stays responsive while they are read, folded, laid out
// and planned, and shows them folded on one page. What the GUI thread does for one event is
// measured in processor time of that thread, so that a busy machine does not count as a slow
// window.
#include "tests/real_models.h"
#include "tests/test_program.h"
#include "ui/main_window.h"
#include "ui/views/graph_controller.h"
#include "ui/views/graph_view.h"

#include <QApplication>
#include <QTemporaryDir>
#include <QTest>

#include <ctime>

namespace tst_large_models {

using namespace shardlens;
using test::kSanitized;

namespace {

constexpr int kWait = 120'000;
constexpr std::size_t kMostBoxes = 200;
/// The most that one event may take, seconds; not asked of a program with sanitizers.
constexpr double kMostPerEvent = 0.050;
/// What the machine does meanwhile may slow one opening down, hardly three.
constexpr int kTries = 3;

/// Notes the longest event.
class MeasuringApplication : public QApplication {
public:
    using QApplication::QApplication;

    bool notify(QObject* receiver, QEvent* event) override {
        if (m_depth > 0) return QApplication::notify(receiver, event);
        ++m_depth;
        const int type = event->type();
        const QByteArray name = receiver->metaObject()->className();
        const double start = threadSeconds();
        const bool handled = QApplication::notify(receiver, event);
        const double seconds = threadSeconds() - start;
        --m_depth;
        if (seconds > longest) {
            longest = seconds;
            where = QStringLiteral("event %1 of %2").arg(type).arg(QLatin1String(name));
        }
        return handled;
    }

    double longest = 0;
    QString where;

private:
    static double threadSeconds() {
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
    }
    int m_depth = 0;
};

MeasuringApplication& application() {
    return *static_cast<MeasuringApplication*>(QCoreApplication::instance());
}

} // namespace

class TestLargeModels : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;

private slots:
    void staysResponsive_data() {
        if (!test::addRealModels({"onnx", "hf", "hlo", "mlir", "fx", "profiles", "other"}))
            QSKIP("the folder of real models is not here");
    }
    void staysResponsive() {
        QFETCH(QString, file);
        // programs before and after partitioning fill many pages; tst_hlo_models reads them
        SHARDLENS_SKIP_LARGE(file.contains(QStringLiteral("/hlo/")) &&
                             !file.endsWith(QStringLiteral(".txt")));
        MainWindowOptions wish;
        wish.settingsFile = m_scratch.filePath(QStringLiteral("settings.ini"));
        wish.document.temporaryFolder = m_scratch.filePath(QStringLiteral("unsaved")).toStdString();
        MainWindow main({}, wish);
        main.resize(1300, 850);
        main.show();
        QVERIFY(main.waitForIdle(kWait));
        double longest = kMostPerEvent;
        for (int i = 0; i < (kSanitized ? 1 : kTries) && longest >= kMostPerEvent; ++i) {
            application().longest = 0;
            main.document().open(file);
            QVERIFY(main.waitForIdle(kWait));
            longest = application().longest;
            qInfo().noquote() << longest * 1e3 << "ms in" << application().where;
        }
        QVERIFY(kSanitized || longest < kMostPerEvent);
        if (!main.document().isOpen()) return; // refused
        // A page, not a wall: as many boxes as fit side by side and below each other at a size at
        // which they can be told apart.
        const GraphScene& scene = *main.graphView().overlay()->scene;
        QVERIFY2(scene.items.size() <= kMostBoxes,
                 qPrintable(QStringLiteral("%1 boxes").arg(scene.items.size())));
        QVERIFY2(scene.edges.size() <= 3 * kMostBoxes,
                 qPrintable(QStringLiteral("%1 edges").arg(scene.edges.size())));
    }
};

SHARDLENS_TEST(TestLargeModels, MeasuringApplication)

} // namespace tst_large_models

#include "tst_large_models.moc"
