// SPDX-License-Identifier: Apache-2.0
// The Sweep dock with real widgets: choosing, running and stopping; chart geometry against the
// points' values; table, filter and selection; keys; a point opened as the plan of the window and
// taken back; files read again; what screen readers are told; both themes.
#include "core/error.h"
#include "core/plan/planners/pipeline_job.h"
#include "tests/test_program.h"
#include "ui/format.h"
#include "ui/main_window.h"
#include "ui/panels/sweep_panel.h"

#include <QAbstractItemModelTester>
#include <QAccessible>
#include <QCheckBox>
#include <QComboBox>
#include <QDockWidget>
#include <QFile>
#include <QHeaderView>
#include <QHelpEvent>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPaintEvent>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTemporaryDir>
#include <QTest>
#include <QToolTip>
#include <QXmlStreamReader>

#include <functional>

namespace tst_sweep {

using namespace shardlens;

namespace {

constexpr int kWait = 30'000;
constexpr auto kModel = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
 "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 8,
 "num_attention_heads": 16, "num_key_value_heads": 8, "vocab_size": 32000,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-05, "hidden_act": "silu",
 "tie_word_embeddings": false, "torch_dtype": "bfloat16"})";

} // namespace

/// What of a widget has been painted.
class PaintedRegion : public QObject {
public:
    QRegion region;

protected:
    bool eventFilter(QObject*, QEvent* event) override {
        if (event->type() == QEvent::Paint) region += static_cast<QPaintEvent*>(event)->region();
        return false;
    }
};

class TestSweepPanel : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;
    std::unique_ptr<MainWindow> m_main;

    QString file(const QString& name) const { return m_scratch.filePath(name); }
    SweepPanel& panel() { return m_main->sweep(); }
    SweepChart& chart() { return panel().chart(); }
    SweepModel& model() { return panel().model(); }
    const SweepData& data() { return *model().sweep(); }

    template <typename T>
    T* child(const char* name) {
        return panel().findChild<T*>(QString::fromLatin1(name));
    }
    QString status() { return child<QLabel>("sweepStatus")->text(); }

    std::unique_ptr<MainWindow> window(const QString& opened) const {
        MainWindowOptions options;
        options.settingsFile = file(QStringLiteral("settings.ini"));
        options.document.temporaryFolder = file(QStringLiteral("unsaved")).toStdString();
        auto made = std::make_unique<MainWindow>(opened, options);
        made->resize(1400, 950);
        made->show();
        return made;
    }

    void run() {
        QTest::mouseClick(child<QPushButton>("sweepRun"), Qt::LeftButton);
        QVERIFY(m_main->waitForIdle(kWait));
        QVERIFY(model().sweep());
    }

    void sweepOne(SweepParameter parameter, const QString& values) {
        panel().form().setWhat(SweepForm::What::OneSetting);
        panel().form().setAxis(0, parameter, values);
        run();
    }

    void sweepTwo() {
        panel().form().setWhat(SweepForm::What::TwoSettings);
        panel().form().setAxis(0, SweepParameter::Tensor, QStringLiteral("1,2,4"));
        panel().form().setAxis(1, SweepParameter::Zero, QStringLiteral("0..3:1"));
        run();
    }

    /// The plan that the window's request asks for.
    PipelineAnswer asked() {
        const Document& document = m_main->document();
        StagePricer pricer =
            makeStagePricer(document.modelFile(), document.bundle(), document.request());
        return planJob(pricer, document.request());
    }

    static std::size_t pixelsLike(const QImage& image, const QColor& colour) {
        std::size_t found = 0;
        for (int y = 0; y < image.height(); ++y)
            for (int x = 0; x < image.width(); ++x) {
                const QColor at = image.pixelColor(x, y);
                found += std::abs(at.red() - colour.red()) + std::abs(at.green() - colour.green()) +
                             std::abs(at.blue() - colour.blue()) <
                         24;
            }
        return found;
    }

private slots:
    void initTestCase() {
        QVERIFY(m_scratch.isValid());
        installSweepAccessibility();
        QFile out(file(QStringLiteral("model.json")));
        QVERIFY(out.open(QIODevice::WriteOnly));
        out.write(kModel);
    }

    void init() {
        m_main = window(file(QStringLiteral("model.json")));
        QVERIFY(m_main->waitForIdle(kWait));
        PlanRequest request = m_main->document().request();
        request.cluster = "dgx-a100";
        request.nodes = 1;
        request.devicesPerNode = 4;
        request.mesh.clear();
        request.batch = 16;
        request.sequence = 1024;
        m_main->document().changeSetup(request, QStringLiteral("Setup of the test"));
        QVERIFY(m_main->waitForIdle(kWait));
        QTest::keyClick(m_main.get(), Qt::Key_G, Qt::ControlModifier);
        QVERIFY(m_main->findChild<QDockWidget*>(QStringLiteral("sweepDock"))->isVisible());
        QVERIFY(QTest::qWaitForWindowExposed(m_main.get()));
        m_main->activateWindow();
    }

    void cleanup() { m_main.reset(); }

    /// Ten thousand points are not painted again because another one is meant.
    void marksAloneArePainted() {
        sweepTwo();
        QTRY_VERIFY(!chart().rectOf(3).isEmpty());
        QCoreApplication::processEvents();
        PaintedRegion painted;
        chart().installEventFilter(&painted);
        const auto isLittle = [&](int row) {
            QCoreApplication::processEvents();
            const QRect mark = chart().rectOf(row).toAlignedRect();
            QVERIFY(painted.region.contains(mark.center()));
            qint64 area = 0;
            for (const QRect& part : painted.region) area += qint64{part.width()} * part.height();
            const qint64 most = qint64{chart().width()} * chart().height() / 2;
            QVERIFY2(area < most, qPrintable(QString::number(area)));
            painted.region = {};
        };
        QTest::mouseMove(&chart(), chart().rectOf(3).center().toPoint());
        isLittle(3);
        chart().select(3);
        isLittle(3);
        chart().removeEventFilter(&painted);
    }

    void saysWhatToDoWhenEmpty() {
        QVERIFY(chart().placeholder().contains(QStringLiteral("Run")));
        QVERIFY(!model().sweep());
        QVERIFY(!child<QPushButton>("sweepOpen")->isEnabled());
        QVERIFY(child<QPushButton>("sweepRun")->isEnabled());
        for (const int key : {Qt::Key_Right, Qt::Key_Return, Qt::Key_Home, Qt::Key_Escape})
            QTest::keyClick(&chart(), static_cast<Qt::Key>(key)); // nothing to act on
        QCOMPARE(panel().selected(), -1);
    }

    void allPointsAreTheGrid() {
        run();
        StagePricer pricer =
            makeStagePricer(m_main->document().modelFile(), m_main->document().bundle(),
                            m_main->document().request());
        const auto grid = megatronGrid(pricer, pipelineRequest(m_main->document().request()));
        QVERIFY(grid.size() > 100);
        QCOMPARE(std::size_t(model().rowCount()), grid.size());
        QVERIFY2(status().startsWith(QStringLiteral("%1 points").arg(grid.size())),
                 qPrintable(status()));
        for (std::size_t i = 0; i < grid.size(); ++i)
            QCOMPARE(data().row(int(i)).seconds, grid[i].seconds);
    }

    /// From the place on the screen back to the value; the front runs down to the right.
    void pointsStandAtTheirValues() {
        run();
        const SweepGeometry& g = chart().geometryNow();
        QCOMPARE(g.shape, SweepShape::Scatter);
        for (int row = 0; row < data().rows(); ++row) {
            const QPointF at = g.pointOf(data(), row);
            QVERIFY(g.plot.contains(at));
            const double seconds = g.x.value((at.x() - g.plot.left()) / g.plot.width());
            const double memory = g.y.value((g.plot.bottom() - at.y()) / g.plot.height());
            QVERIFY(std::abs(seconds / data().row(row).seconds - 1) < 1e-9);
            QVERIFY(std::abs(memory / data().row(row).memory - 1) < 1e-9);
        }
        const std::vector<int> front = frontOf(data(), chart().shown());
        QVERIFY(front.size() >= 2);
        for (std::size_t i = 1; i < front.size(); ++i) {
            QVERIFY(g.pointOf(data(), front[i]).x() > g.pointOf(data(), front[i - 1]).x());
            QVERIFY(g.pointOf(data(), front[i]).y() > g.pointOf(data(), front[i - 1]).y());
        }
        // Ticks are round, inside, ascending.
        for (const ChartScale* scale : {&g.x, &g.y}) {
            const auto ticks = scale->ticks(6);
            QVERIFY(!ticks.empty() && ticks.size() <= 6);
            QVERIFY(std::ranges::is_sorted(ticks));
            QVERIFY(ticks.front() >= scale->low() && ticks.back() <= scale->high());
        }
    }

    void aClickSelectsInTableToo() {
        run();
        const std::vector<int> front = frontOf(data(), chart().shown());
        for (const int row : front) {
            QTest::mouseClick(&chart(), Qt::LeftButton, {}, chart().rectOf(row).center().toPoint());
            const int hit = panel().selected();
            QVERIFY(hit >= 0);
            // marks may overlap: what was hit lies at most a mark's width away
            QVERIFY(QLineF(chart().rectOf(hit).center(), chart().rectOf(row).center()).length() <
                    10);
            QCOMPARE(model().source(panel().table().currentIndex().row()), hit);
            QVERIFY(child<QLabel>("sweepPoint")->text() == data().describe(hit));
        }
        // and the other way
        panel().table().setCurrentIndex(model().index(5, 0));
        QCOMPARE(panel().selected(), model().source(5));
        QTest::mouseClick(&chart(), Qt::LeftButton, {}, QPoint(3, 3)); // nothing there
        QCOMPARE(panel().selected(), -1);
        QVERIFY(!panel().table().currentIndex().isValid());
        QVERIFY(child<QLabel>("sweepPoint")->text().isEmpty());
    }

    void modelHoldsItsContract() {
        QAbstractItemModelTester tester(&model(),
                                        QAbstractItemModelTester::FailureReportingMode::QtTest);
        run();
        const int columns = model().columnCount();
        for (int c = 0; c < columns; ++c)
            for (const Qt::SortOrder order : {Qt::AscendingOrder, Qt::DescendingOrder}) {
                model().sort(c, order);
                for (int row = 1; row < model().rowCount(); ++row) {
                    const double a = data().key(model().source(row - 1), c);
                    const double b = data().key(model().source(row), c);
                    QVERIFY(order == Qt::AscendingOrder ? a <= b : a >= b);
                    QCOMPARE(model().place(model().source(row)), row);
                }
            }
        sweepTwo();
        QCOMPARE(model().rowCount(), 12);
    }

    void aClickOnAHeaderSorts() {
        run();
        panel().select(model().source(7));
        const int chosen = panel().selected();
        QHeaderView* header = panel().table().horizontalHeader();
        int time = 0;
        while (data().title(time) != QStringLiteral("Time")) ++time;
        panel().table().scrollTo(model().index(0, time));
        QTest::mouseClick(header->viewport(), Qt::LeftButton, {},
                          QPoint(header->sectionViewportPosition(time) + 5, 5));
        double least = 1e300;
        for (int row = 0; row < data().rows(); ++row)
            least = std::min(least, data().row(row).seconds);
        const int first =
            header->sortIndicatorOrder() == Qt::AscendingOrder ? 0 : model().rowCount() - 1;
        QCOMPARE(data().row(model().source(first)).seconds, least);
        QCOMPARE(panel().selected(), chosen); // the point stays selected where it now is
        QCOMPARE(model().source(panel().table().currentIndex().row()), chosen);
    }

    void wordsFilter() {
        run();
        const auto number = [](const SweepRow& row, std::size_t column) {
            return std::get<std::int64_t>(row.values[column]);
        };
        const auto word = [](const SweepRow& row, std::size_t column) {
            return std::get<std::string>(row.values[column]);
        };
        using Row = const SweepRow&;
        const std::vector<std::pair<const char*, std::function<bool(Row)>>> filters{
            {"tp=2", [&](Row row) { return number(row, 0) == 2; }},
            {"pp>1", [&](Row row) { return number(row, 3) > 1; }},
            {"tp=2 pp>=2", [&](Row row) { return number(row, 0) == 2 && number(row, 3) >= 2; }},
            {"interleaved", [&](Row row) { return word(row, 9) == "interleaved"; }},
            {"sp=on", [&](Row row) { return word(row, 1) == "on"; }},
            {"memory<5", [](Row row) { return row.memory < 5.0 * (1 << 30); }},
            {"bubble<=10", [](Row row) { return row.bubble <= 0.1; }}};
        auto* filter = child<QLineEdit>("sweepFilter");
        filter->setFocus();
        for (const auto& [text, holds] : filters) {
            filter->clear();
            QTest::keyClicks(filter, QString::fromLatin1(text));
            QTest::keyClick(filter, Qt::Key_Return);
            int expected = 0;
            for (int row = 0; row < data().rows(); ++row) {
                expected += holds(data().row(row));
                QCOMPARE(model().place(row) >= 0, holds(data().row(row)));
            }
            QVERIFY2(expected > 0 && expected < data().rows(), text);
            QCOMPARE(model().rowCount(), expected);
            QCOMPARE(int(chart().shown().size()), expected);
            QVERIFY(status().contains(QStringLiteral("%1 shown").arg(expected)));
        }
    }

    void filtersThatSayNothing() {
        run();
        auto* filter = child<QLineEdit>("sweepFilter");
        for (const char* text : {"colour=3", "tp<x", "nothingofthat"}) {
            filter->clear();
            QTest::keyClicks(filter, QString::fromLatin1(text));
            QTest::keyClick(filter, Qt::Key_Return);
            const bool word = QByteArray(text) == "nothingofthat";
            QCOMPARE(model().rowCount(), word ? 0 : data().rows());
            QCOMPARE(filter->styleSheet().isEmpty(), word);
        }
        filter->clear();
        QTest::keyClick(filter, Qt::Key_Return);
        QTest::mouseClick(child<QCheckBox>("sweepFront"), Qt::LeftButton, {}, QPoint(8, 8));
        QCOMPARE(model().rowCount(), int(frontOf(data(), chart().shown()).size()));
        for (const int row : model().order()) QVERIFY(data().row(row).front);
    }

    void keysWalkThePoints() {
        run();
        chart().setFocus();
        QTest::keyClick(&chart(), Qt::Key_Home);
        const int best = panel().selected();
        for (int row = 0; row < data().rows(); ++row)
            QVERIFY(!data().row(row).fits || data().row(row).seconds >= data().row(best).seconds);
        // Right: slower by one place; all points are passed once.
        std::vector<int> byTime = chart().shown();
        std::ranges::stable_sort(byTime, {}, [&](int row) { return data().row(row).seconds; });
        panel().select(byTime.front());
        for (std::size_t i = 1; i < 20; ++i) {
            QTest::keyClick(&chart(), Qt::Key_Right);
            QCOMPARE(panel().selected(), byTime[i]);
        }
        QTest::keyClick(&chart(), Qt::Key_Left);
        QCOMPARE(panel().selected(), byTime[18]);
        const double memory = data().row(panel().selected()).memory;
        QTest::keyClick(&chart(), Qt::Key_Up);
        QVERIFY(data().row(panel().selected()).memory >= memory);
        const std::vector<int> front = frontOf(data(), chart().shown());
        panel().select(front.front());
        for (std::size_t i = 1; i < front.size(); ++i) {
            QTest::keyClick(&chart(), Qt::Key_Right, Qt::ShiftModifier);
            QCOMPARE(panel().selected(), front[i]);
        }
        QTest::keyClick(&chart(), Qt::Key_Escape);
        QCOMPARE(panel().selected(), -1);
    }

    void aLineOfOneSetting() {
        sweepOne(SweepParameter::Stages, QStringLiteral("1,2,4,3"));
        QCOMPARE(model().rowCount(), 4);
        const SweepGeometry& g = chart().geometryNow();
        QCOMPARE(g.shape, SweepShape::Line);
        QVERIFY(!data().row(3).error.empty()); // 8 layers in 3 stages
        for (int row = 0; row < 4; ++row) {
            const QPointF at = g.pointOf(data(), row);
            QCOMPARE(at.x(), g.plot.left() + g.plot.width() * (row + 0.5) / 4);
            QCOMPARE(chart().rowAt(at), row);
            if (row == 3) continue;
            const double seconds = g.y.value((g.plot.bottom() - at.y()) / g.plot.height());
            QVERIFY(std::abs(seconds / data().row(row).seconds - 1) < 1e-9);
        }
        child<QComboBox>("sweepMeasure")->setCurrentIndex(1);
        const QPointF at = chart().geometryNow().pointOf(data(), 1);
        const SweepGeometry& m = chart().geometryNow();
        QVERIFY(std::abs(m.y.value((m.plot.bottom() - at.y()) / m.plot.height()) /
                             data().row(1).memory -
                         1) < 1e-9);
        // A point without a plan says why and cannot be opened.
        QTest::mouseClick(&chart(), Qt::LeftButton, {}, chart().rectOf(3).center().toPoint());
        QCOMPARE(panel().selected(), 3);
        QVERIFY(child<QLabel>("sweepPoint")->text().contains(text(data().row(3).error)));
        QVERIFY(!child<QPushButton>("sweepOpen")->isEnabled());
        const int steps = m_main->document().undoStack()->count();
        QTest::keyClick(&chart(), Qt::Key_Return);
        QCOMPARE(m_main->document().undoStack()->count(), steps);
    }

    void aMapOfTwoSettings() {
        sweepTwo();
        const SweepGeometry& g = chart().geometryNow();
        QCOMPARE(g.shape, SweepShape::Map);
        QCOMPARE(g.columns, 4);
        QCOMPARE(g.rows, 3);
        for (int row = 0; row < 12; ++row) {
            const QRectF cell = chart().rectOf(row);
            QVERIFY(g.plot.adjusted(-1, -1, 1, 1).contains(cell));
            QCOMPARE(chart().rowAt(cell.center()), row);
            QCOMPARE(cell.center().x(), g.plot.left() + g.plot.width() * (row % 4 + 0.5) / 4);
            const int down = row / 4;
            QCOMPARE(cell.center().y(), g.plot.top() + g.plot.height() * (down + 0.5) / 3);
        }
        panel().select(0);
        chart().setFocus();
        for (const auto& [key, row] : std::vector<std::pair<Qt::Key, int>>{{Qt::Key_Right, 1},
                                                                           {Qt::Key_Down, 5},
                                                                           {Qt::Key_Down, 9},
                                                                           {Qt::Key_Down, 9},
                                                                           {Qt::Key_Left, 8},
                                                                           {Qt::Key_Left, 8},
                                                                           {Qt::Key_Up, 4},
                                                                           {Qt::Key_End, 11},
                                                                           {Qt::Key_Home, 0}}) {
            QTest::keyClick(&chart(), key);
            QCOMPARE(panel().selected(), row);
        }
    }

    void aWrongValueIsNamed() {
        panel().form().setWhat(SweepForm::What::OneSetting);
        panel().form().setAxis(0, SweepParameter::Nodes, QStringLiteral("1,two"));
        QTest::mouseClick(child<QPushButton>("sweepRun"), Qt::LeftButton);
        QVERIFY(m_main->lastError().contains(QStringLiteral("'two'")));
        QVERIFY(!model().sweep());
    }

    void pointsComeInAndCanBeStopped() {
        panel().form().setWhat(SweepForm::What::TwoSettings);
        panel().form().setAxis(0, SweepParameter::Batch, QStringLiteral("32..4096"));
        panel().form().setAxis(1, SweepParameter::Nodes, QStringLiteral("1..16:1"));
        auto* button = child<QPushButton>("sweepRun");
        QTest::mouseClick(button, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(model().rowCount() > 0, kWait);
        QVERIFY(panel().job().running());
        QCOMPARE(button->text(), QStringLiteral("Stop"));
        QVERIFY2(status().contains(QStringLiteral("of 128 points")), qPrintable(status()));
        QTest::mouseClick(button, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!panel().job().running(), kWait);
        QVERIFY(model().rowCount() > 0 && model().rowCount() < 128); // what is done stays
        QVERIFY(status().contains(QStringLiteral("Stopped")));
        QCOMPARE(button->text(), QStringLiteral("&Run"));
    }

    void aPointBecomesThePlan() {
        run();
        Document& document = m_main->document();
        const int steps = document.undoStack()->count();
        const std::vector<int> front = frontOf(data(), chart().shown());
        const int row = *std::ranges::find_if(front, [&](int r) {
            return data().row(r).fits && data().points()[std::size_t(r)].pipeline > 1;
        });
        panel().select(row);
        chart().setFocus();
        QTest::keyClick(&chart(), Qt::Key_Return);
        QVERIFY(m_main->waitForIdle(kWait));
        QCOMPARE(document.undoStack()->count(), steps + 1);
        QCOMPARE(document.undoStack()->undoText(), QStringLiteral("Open plan of the sweep"));
        QVERIFY(document.request().pipeline.has_value());
        QVERIFY(*document.request().pipeline == setupOf(data().points()[std::size_t(row)]));
        const PipelineAnswer answer = asked();
        QCOMPARE(answer.seconds, data().row(row).seconds);
        QCOMPARE(answer.peakMemory, data().row(row).memory);
        QVERIFY(!status().contains(QStringLiteral("earlier setup"))); // it is the same job
        document.undoStack()->undo();
        QVERIFY(m_main->waitForIdle(kWait));
        QVERIFY(!document.request().pipeline.has_value());
        document.undoStack()->redo();
        QVERIFY(m_main->waitForIdle(kWait));
        QVERIFY(document.request().pipeline.has_value());
    }

    void aPointOfASettingBecomesThePlan() {
        sweepOne(SweepParameter::Batch, QStringLiteral("16,64"));
        QTest::mouseDClick(&chart(), Qt::LeftButton, {}, chart().rectOf(1).center().toPoint());
        QVERIFY(m_main->waitForIdle(kWait));
        const Document& document = m_main->document();
        QCOMPARE(document.request().batch, 64);
        QCOMPARE(asked().seconds, data().row(1).seconds);
        QVERIFY2(status().contains(QStringLiteral("earlier setup")), qPrintable(status()));
    }

    void filesCanBeReadAgain() {
        sweepTwo();
        for (const char* ending : {"csv", "png", "svg"}) {
            panel().exportTo(file(QStringLiteral("sweep.") + QString::fromLatin1(ending)));
            QVERIFY(m_main->waitForIdle(kWait));
        }
        QFile csv(file(QStringLiteral("sweep.csv")));
        QVERIFY(csv.open(QIODevice::ReadOnly));
        const QList<QByteArray> lines = csv.readAll().split('\n');
        QCOMPARE(lines.size(), 12 + 2);
        for (int row = 0; row < 12; ++row) {
            const QList<QByteArray> cells = lines[row + 1].trimmed().split(',');
            if (!data().row(row).error.empty()) continue;
            QCOMPARE(cells[0].toInt(), std::get<std::int64_t>(data().row(row).values[0]));
            QCOMPARE(cells[2].toDouble(), data().row(row).seconds);
            QCOMPARE(cells[3].toDouble(), data().row(row).memory);
        }
        const QImage png(file(QStringLiteral("sweep.png")));
        QVERIFY(!png.isNull() && png.width() >= 2 * 640);
        QFile svg(file(QStringLiteral("sweep.svg")));
        QVERIFY(svg.open(QIODevice::ReadOnly));
        QXmlStreamReader xml(&svg);
        QString words;
        while (!xml.atEnd()) {
            xml.readNext();
            if (xml.isCharacters()) words += xml.text();
        }
        QVERIFY2(!xml.hasError(), qPrintable(xml.errorString()));
        QVERIFY(words.contains(QStringLiteral("Step time")));
        QVERIFY(words.contains(QStringLiteral("ZeRO stage")));
        panel().exportTo(file(QStringLiteral("sweep.gif")));
        QVERIFY(m_main->waitForIdle(kWait));
        QVERIFY(m_main->lastError().contains(QStringLiteral(".svg")));
    }

    void screenReadersReadThePoints() {
        sweepTwo();
        QAccessibleInterface* list = QAccessible::queryAccessibleInterface(&chart());
        QVERIFY(list);
        QCOMPARE(list->role(), QAccessible::List);
        QCOMPARE(list->childCount(), 12);
        QVERIFY(list->text(QAccessible::Name).contains(QStringLiteral("Step time of 12 point")));
        QAccessibleInterface* point = list->child(6);
        QCOMPARE(point->text(QAccessible::Name), data().describe(6));
        QCOMPARE(list->indexOfChild(point), 6);
        QVERIFY(!point->state().selected);
        panel().select(6);
        QVERIFY(point->state().selected);
        QCOMPARE(list->childAt(point->rect().center().x(), point->rect().center().y()), point);
        chart().setFocus();
        QCOMPARE(list->focusChild(), point);
    }

    void tipsTellThePoint() {
        run();
        const int row = frontOf(data(), chart().shown()).front();
        const QPoint at = chart().rectOf(row).center().toPoint();
        QHelpEvent help(QEvent::ToolTip, at, chart().mapToGlobal(at));
        QApplication::sendEvent(&chart(), &help);
        QCOMPARE(QToolTip::text(), data().describe(chart().rowAt(at)));
        QToolTip::hideText();
    }

    void bothThemes() {
        run();
        for (const ThemeMode mode : {ThemeMode::Light, ThemeMode::Dark}) {
            applyTheme(mode);
            QApplication::processEvents();
            const Palette& palette = mode == ThemeMode::Dark ? Palette::dark() : Palette::light();
            const QImage image = chart().grab().toImage();
            QVERIFY(pixelsLike(image, palette.canvas) > std::size_t(image.width() * 40));
            QVERIFY(pixelsLike(image, palette.category(0)) > 50);
            QVERIFY(pixelsLike(image, palette.bad) > 20 ||
                    chart().geometryNow().y.high() < data().table().memoryLimit);
        }
        applyTheme(ThemeMode::System);
    }

    void settingsAreKept() {
        sweepOne(SweepParameter::Tensor, QStringLiteral("1,2"));
        child<QComboBox>("sweepMeasure")->setCurrentIndex(2);
        const QString session = file(QStringLiteral("s.shardlens"));
        QVERIFY(m_main->saveTo(session));
        m_main->close();
        m_main = window(session);
        QVERIFY(m_main->waitForIdle(kWait));
        QCOMPARE(panel().form().what(), SweepForm::What::OneSetting);
        const auto axes = panel().form().axes();
        QCOMPARE(axes[0].parameter, SweepParameter::Tensor);
        QCOMPARE(axes[0].values, (std::vector<std::string>{"1", "2"}));
        QCOMPARE(chart().measure(), SweepMeasure::Bubble);
        QVERIFY(m_main->findChild<QDockWidget*>(QStringLiteral("sweepDock"))->isVisible());
    }
};

SHARDLENS_TEST(TestSweepPanel)

} // namespace tst_sweep

#include "tst_sweep.moc"
