// SPDX-License-Identifier: Apache-2.0
// The solver's panel in the window: a plan's proof, a benchmark problem opened, solved and stopped,
// a damaged one; the chart's lines in either theme.
#include "core/solve/contest_file.h"
#include "tests/core/solve/interval_problems.h"
#include "tests/test_program.h"
#include "ui/main_window.h"
#include "ui/views/solver_chart.h"

#include <QDockWidget>
#include <QFile>
#include <QLabel>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>

#include <fstream>

namespace tst_solver_panel {

using namespace shardlens;

namespace {

constexpr int kWait = 20'000;
constexpr auto kModel = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
 "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 5, "num_attention_heads": 8,
 "num_key_value_heads": 8, "vocab_size": 1024, "max_position_embeddings": 4096,
 "rms_norm_eps": 1e-05, "hidden_act": "silu", "tie_word_embeddings": false})";

/// Two nodes, optimum 4 at limit 3: the cheap choices use 2 each.
constexpr auto kProblem = R"({"problem": {"name": "two", "nodes": {"intervals": [[0, 2], [1, 3]],
 "costs": [[1, 2], [1, 3]], "usages": [[2, 1], [2, 1]]}, "edges": {"nodes": [[0, 1]],
 "costs": [[0, 1, 1, 7]]}, "usage_limit": 3}})";

std::size_t pixelsLike(const QImage& image, const QColor& colour) {
    std::size_t found = 0;
    for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) {
            const QColor at = image.pixelColor(x, y);
            found += std::abs(at.red() - colour.red()) + std::abs(at.green() - colour.green()) +
                         std::abs(at.blue() - colour.blue()) <
                     12;
        }
    }
    return found;
}

} // namespace

class TestSolverPanel : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;

    QString write(const QString& name, const QByteArray& bytes) const {
        const QString path = m_scratch.filePath(name);
        QFile file(path);
        if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size()) return {};
        return path;
    }

    std::unique_ptr<MainWindow> window() const {
        MainWindowOptions wish;
        wish.settingsFile = m_scratch.filePath(QStringLiteral("settings.ini"));
        wish.document.temporaryFolder = m_scratch.filePath(QStringLiteral("unsaved")).toStdString();
        auto made = std::make_unique<MainWindow>(QString(), wish);
        made->resize(1300, 850);
        made->show();
        return made;
    }

    static QString textOf(MainWindow& main, const char* label) {
        return main.findChild<QLabel*>(QString::fromLatin1(label))->text();
    }

private slots:
    void aPlanShowsHowItWasProven() {
        const auto main = window();
        main->openFile(write(QStringLiteral("model.json"), kModel));
        QVERIFY(main->waitForIdle(kWait));
        QVERIFY(main->document().plan()->optimal);
        QCOMPARE(textOf(*main, "solverBadge"), QStringLiteral("✓ proven optimal"));
        const QString facts = textOf(*main, "solverFacts");
        const auto& folding = *main->document().folding();
        QVERIFY2(facts.contains(QStringLiteral("%1 classes").arg(folding.classes.size())),
                 qPrintable(facts));
        QVERIFY2(
            facts.contains(
                QStringLiteral("of %1 variables").arg(main->document().plan()->effort.variables)),
            qPrintable(facts));
        QVERIFY(facts.contains(QStringLiteral("Proof: exact elimination")));
        QVERIFY(
            !main->findChild<QPushButton*>(QStringLiteral("solverStop"))->isVisibleTo(main.get()));
    }

    void aBenchmarkProblemIsSolved() {
        const auto main = window();
        main->openFile(write(QStringLiteral("two.json"), kProblem));
        QTRY_VERIFY_WITH_TIMEOUT(!main->benchmark().running(), kWait);
        QCOMPARE(main->benchmark().state().cost, 4.0);
        QVERIFY(main->findChild<QDockWidget*>(QStringLiteral("solverDock"))->isVisible());
        QCOMPARE(textOf(*main, "solverTitle"), QStringLiteral("two.json"));
        QCOMPARE(textOf(*main, "solverBadge"), QStringLiteral("✓ proven optimal"));
        const QString facts = textOf(*main, "solverFacts");
        QVERIFY2(facts.contains(QStringLiteral("Given: 2 nodes, 4 choices, 1 pairs")),
                 qPrintable(facts));
        QVERIFY2(facts.contains(QStringLiteral("Peak 3 of 3")), qPrintable(facts));
        const auto* chart = main->findChild<SolverChart*>();
        QVERIFY2(chart->accessibleDescription().contains(QStringLiteral("best 4, bound 4")),
                 qPrintable(chart->accessibleDescription()));
        QVERIFY(!main->document().isOpen());
    }

    void aSearchIsStoppedByItsButton() {
        const solve::test::IntervalShape shape{
            .nodes = 3000, .mostChoices = 12, .mostCost = 1000, .tightness = 0.05};
        const QString path = m_scratch.filePath(QStringLiteral("large.json"));
        {
            std::ofstream out(path.toStdString());
            solve::writeContest(out, solve::test::IntervalMaker(3).make(shape));
        }
        const auto main = window();
        main->openFile(path);
        auto* stop = main->findChild<QPushButton*>(QStringLiteral("solverStop"));
        QTRY_VERIFY_WITH_TIMEOUT(std::isfinite(main->benchmark().state().cost), kWait);
        QVERIFY(main->benchmark().running() && stop->isVisible());
        QVERIFY(textOf(*main, "solverFacts").contains(QStringLiteral("Reduced: ")));
        QTest::mouseClick(stop, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!main->benchmark().running(), kWait);
        QVERIFY(!stop->isVisible());
        QCOMPARE(textOf(*main, "solverStage"), QStringLiteral("Stopped"));
        QVERIFY(textOf(*main, "solverBadge").startsWith(QStringLiteral("gap ")));
        QVERIFY(main->benchmark().state().bound < main->benchmark().state().cost);
    }

    void aDamagedProblemSaysWhy() {
        const auto main = window();
        main->openFile(write(QStringLiteral("cut.json"), QByteArray(kProblem).left(120)));
        QTRY_VERIFY_WITH_TIMEOUT(!main->benchmark().running(), kWait);
        QVERIFY2(textOf(*main, "solverStage").contains(QStringLiteral("cut.json")),
                 qPrintable(textOf(*main, "solverStage")));
        QVERIFY(!main->findChild<QLabel*>(QStringLiteral("solverBadge"))->isVisible());
    }

    void theWindowClosesWhileOneRuns() {
        auto main = window();
        main->openFile(m_scratch.filePath(QStringLiteral("large.json")));
        QVERIFY(main->benchmark().running());
        main.reset(); // waits for the solver to stop, and nothing is called afterwards
        QTest::qWait(50);
    }

    void linesStandOutInEitherTheme() {
        for (const bool dark : {false, true}) {
            const Palette& palette = dark ? Palette::dark() : Palette::light();
            SolverChart chart;
            chart.setPalette(palette.widgetPalette());
            chart.resize(420, 240);
            chart.setPoints({{solve::kInfinite, 60, 0.5, {}}, {140, 80, 1, {}}, {110, 95, 4, {}}},
                            [](double v) { return QString::number(v); });
            QImage image(chart.size(), QImage::Format_RGB32);
            chart.render(&image);
            for (const bool bound : {false, true}) {
                const QColor ink = SolverChart::ink(palette, bound);
                QVERIFY(Palette::contrast(ink, palette.canvas) >= 3);
                QVERIFY2(pixelsLike(image, ink) > 200,
                         qPrintable(QString::number(pixelsLike(image, ink))));
            }
            // The gap from 95 to 110 is a third of what is shown.
            QCOMPARE(chart.range().low, 95 - 0.7 * 15);
            QCOMPARE(chart.range().high, 110 + 1.3 * 15);
        }
    }
};

SHARDLENS_TEST(TestSolverPanel)

} // namespace tst_solver_panel

#include "tst_solver_panel.moc"
