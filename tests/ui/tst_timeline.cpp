// SPDX-License-Identifier: Apache-2.0
// The Timeline dock, driven as a user does: clicks, keys, wheel and drags. Expected places come
// from closed forms. 1F1B with p = 4, m = 8, F = 1, whole backward 2: the makespan is
// (m + p − 1)(F + B) = 33; on the last device forward i starts at p − 1 + 3i and its backward one
// later; on the first, backward i starts at 10 + 3i, as its gradient has come back through p − 1
// backwards of 2 by then.
#include "core/schedule/schedule_csv.h"
#include "tests/test_program.h"
#include "ui/main_window.h"
#include "ui/panels/timeline_panel.h"

#include <QAccessible>
#include <QBuffer>
#include <QComboBox>
#include <QDockWidget>
#include <QDoubleSpinBox>
#include <QFile>
#include <QImage>
#include <QImageReader>
#include <QJsonArray>
#include <QJsonDocument>
#include <QLineEdit>
#include <QSpinBox>
#include <QSvgRenderer>
#include <QTableWidget>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QWheelEvent>
#include <QXmlStreamReader>

namespace tst_timeline {

using namespace shardlens;
using namespace shardlens::schedule;

namespace {

constexpr int kWait = 20'000;
constexpr int kDevices = 4, kMicroBatches = 8;
constexpr double kMakespan = 33;
constexpr auto kModel = R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
 "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
 "num_key_value_heads": 4, "vocab_size": 256, "max_position_embeddings": 512,
 "rms_norm_eps": 1e-05, "hidden_act": "silu", "tie_word_embeddings": false})";

TaskId taskOf(const TimelinePicture& picture, Pass pass, int stage, int microBatch) {
    const auto& tasks = picture.schedule().program.tasks;
    for (TaskId id = 0; id < tasks.size(); ++id) {
        if (tasks[id].pass == pass && tasks[id].stage == stage &&
            tasks[id].microBatch == static_cast<std::uint32_t>(microBatch)) {
            return id;
        }
    }
    return kNoTask;
}

ScheduleSpec specOf(const char* name, std::uint32_t devices, std::uint32_t microBatches) {
    ScheduleSpec spec;
    spec.name = name;
    spec.devices = devices;
    spec.microBatches = microBatches;
    return spec;
}

std::shared_ptr<const TimelinePicture> pictureOf(const ScheduleSpec& spec,
                                                 TimelineStyle style = {}) {
    return std::make_shared<const TimelinePicture>(
        std::make_shared<const Schedule>(makeSchedule(spec)), style);
}

bool near(double a, double b, double slack = 1e-9) {
    return std::abs(a - b) <= slack;
}

} // namespace

class TestTimeline : public QObject {
    Q_OBJECT

    QTemporaryDir m_scratch;
    std::unique_ptr<Document> m_document;
    std::unique_ptr<TimelinePanel> m_panel;

    QString file(const QString& name) const { return m_scratch.filePath(name); }
    TimelineView& view() { return m_panel->view(); }
    const TimelinePicture& picture() { return *view().picture(); }

    template <typename Widget>
    Widget* child(const char* name) {
        auto* found = m_panel->findChild<Widget*>(QLatin1String(name));
        if (!found) qFatal("no widget %s", name);
        return found;
    }

    void choose(const QString& name) {
        auto* box = child<QComboBox>("timelineSchedule");
        box->setCurrentIndex(box->findData(name));
        QVERIFY(m_panel->waitForIdle(kWait));
    }

    /// Types a number into a spin box, as one does.
    template <typename Box>
    void type(const char* name, const QString& number) {
        auto* box = child<Box>(name);
        box->setFocus();
        box->selectAll();
        QTest::keyClicks(box, number);
        QTest::keyClick(box, Qt::Key_Return);
        QVERIFY(m_panel->waitForIdle(kWait));
    }

    void click(TaskId id) {
        QTest::mouseClick(&view(), Qt::LeftButton, {}, view().taskRect(id).center().toPoint());
    }

    QPoint at(double time, int device) {
        const TimelineGeometry g = view().geometryNow();
        return QPointF(g.xAt(time), g.row(static_cast<std::size_t>(device)).center().y()).toPoint();
    }

    void wheel(QPoint where, int steps, Qt::KeyboardModifiers modifiers = {}) {
        QWheelEvent event(where, view().mapToGlobal(QPointF(where)), {}, {0, 120 * steps},
                          Qt::NoButton, modifiers, Qt::NoScrollPhase, false);
        QApplication::sendEvent(&view(), &event);
    }

    void drag(Qt::MouseButton button, QPoint from, QPoint to) {
        QTest::mousePress(&view(), button, {}, from);
        const QPoint middle = (from + to) / 2;
        for (const QPoint& point : {middle, to}) {
            QMouseEvent move(QEvent::MouseMove, point, view().mapToGlobal(point), Qt::NoButton,
                             button, {});
            QApplication::sendEvent(&view(), &move);
        }
        QTest::mouseRelease(&view(), button, {}, to);
    }

private slots:
    void initTestCase() {
        QVERIFY(m_scratch.isValid());
        installTimelineAccessibility();
        QFile model(file(QStringLiteral("model.json")));
        QVERIFY(model.open(QIODevice::WriteOnly));
        model.write(kModel);
    }

    void init() {
        m_document = std::make_unique<Document>();
        m_panel = std::make_unique<TimelinePanel>(*m_document);
        m_panel->resize(1240, 420);
        m_panel->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_panel.get()));
        m_panel->activateWindow();
    }

    void cleanup() {
        m_panel.reset();
        m_document.reset();
    }

    void saysWhatToDoWhenEmpty() {
        QVERIFY(!view().picture());
        QVERIFY(view().placeholder().contains(QStringLiteral("Choose a schedule")));
        QVERIFY(!child<QToolButton>("timelineExport")->isEnabled());
        // every generator, and the session's own plan, which there is none of yet
        auto* schedules = child<QComboBox>("timelineSchedule");
        QCOMPARE(schedules->count(), static_cast<int>(generators().size()) + 1);
        const int plan = schedules->findData(QStringLiteral("plan"));
        QVERIFY(
            !(schedules->model()->flags(schedules->model()->index(plan, 0)) & Qt::ItemIsEnabled));
        for (const int key : {Qt::Key_Right, Qt::Key_Plus, Qt::Key_Space, Qt::Key_P}) {
            QTest::keyClick(&view(), static_cast<Qt::Key>(key)); // nothing to act on
        }
        QVERIFY(!view().isPlaying());
    }

    void barsStandAtClosedFormPlaces() {
        choose(QStringLiteral("1f1b"));
        QVERIFY(near(picture().makespan(), kMakespan));
        const TimelineGeometry g = view().geometryNow();
        QVERIFY(view().isFitted());
        for (int i = 0; i < kMicroBatches; ++i) {
            const TaskId forward = taskOf(picture(), Pass::Forward, kDevices - 1, i);
            const TaskId backward = taskOf(picture(), Pass::Backward, kDevices - 1, i);
            const TaskId first = taskOf(picture(), Pass::Backward, 0, i);
            const double begins = kDevices - 1 + 3 * i;
            // From the place on the screen back to the time, and from the time to the bar.
            QVERIFY(near(g.timeAt(view().taskRect(forward).left()), begins));
            QVERIFY(near(g.timeAt(view().taskRect(forward).right()), begins + 1));
            QCOMPARE(view().taskAt(at(begins + 0.5, kDevices - 1)), forward);
            QCOMPARE(view().taskAt(at(begins + 1.5, kDevices - 1)), backward);
            QCOMPARE(view().taskAt(at(begins + 2.9, kDevices - 1)), backward);
            QCOMPARE(view().taskAt(at(10 + 3 * i + 0.5, 0)), first);
            QVERIFY(near(g.timeAt(view().taskRect(first).left()), 10 + 3 * i));
        }
        QCOMPARE(view().taskAt(at(1, kDevices - 1)), kNoTask); // still filling
        QCOMPARE(view().taskAt(QPointF(2, 2)), kNoTask);
        QCOMPARE(view().deviceAt(at(1, 2)), 2);
        // Every bar is found where it is drawn.
        for (TaskId id = 0; id < picture().schedule().program.tasks.size(); ++id) {
            if (view().picture()->laneOf(id) < 0) continue;
            QCOMPARE(view().taskAt(view().taskRect(id).center()), id);
        }
    }

    void jointPassesShareTheirTime() {
        choose(QStringLiteral("dualpipe"));
        type<QSpinBox>("timelineDevices", QStringLiteral("8"));
        type<QSpinBox>("timelineMicroBatches", QStringLiteral("16"));
        QVERIFY(near(picture().makespan(), 54)); // F&B = 3: the published check
        int joint = 0;
        for (TaskId id = 0; id < picture().schedule().program.tasks.size(); ++id) {
            if (!picture().isLowerHalf(id)) continue;
            ++joint;
            QVERIFY(near(view().taskRect(id).left(), view().taskRect(id - 1).left()));
            QVERIFY(view().taskRect(id).top() > view().taskRect(id - 1).center().y());
            QCOMPARE(view().taskAt(view().taskRect(id).center()), id);
            QCOMPARE(view().taskAt(view().taskRect(id - 1).center()), id - 1);
        }
        QVERIFY(joint > 0);
    }

    void wheelZoomsWhereThePointerIs() {
        choose(QStringLiteral("1f1b"));
        const QPoint where = at(12, 1);
        const double under = view().geometryNow().timeAt(where.x());
        wheel(where, 4);
        QVERIFY(near(view().geometryNow().timeAt(where.x()), under, 1e-6));
        QVERIFY(near(view().end() - view().begin(), kMakespan / std::pow(1.25, 4), 1e-6));
        wheel(where, -1, Qt::ShiftModifier); // pans, the span stays
        QVERIFY(near(view().end() - view().begin(), kMakespan / std::pow(1.25, 4), 1e-6));
        QVERIFY(view().geometryNow().timeAt(where.x()) > under);
        QTest::keyClick(&view(), Qt::Key_0);
        QVERIFY(view().isFitted());
        wheel(where, -10); // never beyond the step
        QVERIFY(view().isFitted());
        for (int i = 0; i < 40; ++i) wheel(where, 30);
        QVERIFY(view().end() > view().begin()); // as near as one can get
        QVERIFY(!view().grab().isNull());
    }

    void dragsZoomAndPan() {
        choose(QStringLiteral("1f1b"));
        drag(Qt::LeftButton, at(6, 1), at(18, 1));
        const double perPixel = kMakespan / view().geometryNow().plot.width();
        QVERIFY(near(view().begin(), 6, perPixel));
        QVERIFY(near(view().end(), 18, perPixel));
        QCOMPARE(view().selected(), kNoTask); // a drag is no click
        const double begin = view().begin(), span = view().end() - begin;
        drag(Qt::MiddleButton, at(12, 1), at(10, 1));
        QVERIFY(near(view().begin(), begin + 2, perPixel));
        QVERIFY(near(view().end() - view().begin(), span));
        const TimelineGeometry g = view().geometryNow();
        drag(Qt::LeftButton, QPointF(g.xAt(10), g.axis.center().y()).toPoint(),
             QPointF(g.xAt(13), g.axis.center().y()).toPoint());
        QVERIFY(near(view().time().value_or(0), 13, perPixel)); // scrubbed, not zoomed
        QVERIFY(near(view().end() - view().begin(), span));
    }

    void keysZoom() {
        choose(QStringLiteral("1f1b"));
        QTest::keyClick(&view(), Qt::Key_Plus);
        QVERIFY(near(view().end() - view().begin(), kMakespan / 1.25));
        QTest::keyClick(&view(), Qt::Key_Minus);
        QVERIFY(view().isFitted());
        click(taskOf(picture(), Pass::Backward, 2, 3));
        QTest::keyClick(&view(), Qt::Key_F);
        QVERIFY(near(view().end() - view().begin(), 7 * 2)); // the bar, three times itself around
        const double begin = view().begin();
        QTest::keyClick(&view(), Qt::Key_Right, Qt::ControlModifier);
        QVERIFY(near(view().begin(), begin + 0.2 * 14));
        QTest::mouseClick(child<QToolButton>("timelineFit"), Qt::LeftButton);
        QVERIFY(view().isFitted());
    }

    void selectionFollowsDependencies() {
        choose(QStringLiteral("1f1b"));
        const TaskId start = taskOf(picture(), Pass::Backward, 1, 2);
        click(start);
        QCOMPARE(view().selected(), start);
        QCOMPARE(view().device(), 1);
        QVERIFY(m_panel->figures().contains(QStringLiteral("1B2")));
        QTest::keyClick(&view(), Qt::Key_P); // it waited for the next stage's gradient
        QCOMPARE(view().selected(), taskOf(picture(), Pass::Backward, 2, 2));
        QTest::keyClick(&view(), Qt::Key_S);
        QCOMPARE(view().selected(), start);
        QTest::keyClick(&view(), Qt::Key_S);
        QCOMPARE(view().selected(), taskOf(picture(), Pass::Backward, 0, 2));
        QTest::keyClick(&view(), Qt::Key_Escape);
        QCOMPARE(view().selected(), kNoTask);
    }

    void keysWalk() {
        choose(QStringLiteral("1f1b"));
        click(taskOf(picture(), Pass::Forward, 0, 0));
        for (int i = 1; i < kDevices; ++i) {
            QTest::keyClick(&view(), Qt::Key_Right); // warm-up: p forwards
            QCOMPARE(view().selected(), taskOf(picture(), Pass::Forward, 0, i));
        }
        QTest::keyClick(&view(), Qt::Key_Right);
        QCOMPARE(view().selected(), taskOf(picture(), Pass::Backward, 0, 0));
        QVERIFY(near(view().time().value_or(-1), 10));
        QTest::keyClick(&view(),
                        Qt::Key_Down); // at 10 device 1 is in its forward 3: 9 … 10 is over
        QCOMPARE(picture().task(view().selected()).device, std::uint16_t{1});
        QTest::keyClick(&view(), Qt::Key_Up);
        QCOMPARE(picture().task(view().selected()).device, std::uint16_t{0});
        QTest::keyClick(&view(), Qt::Key_Left);
        QCOMPARE(picture().task(view().selected()).microBatch, std::uint32_t{3});
    }

    void timeStepsFromEventToEvent() {
        choose(QStringLiteral("1f1b"));
        for (const double moment : {0.0, 1.0, 2.0, 3.0}) {
            QTest::keyClick(&view(), Qt::Key_Right); // all times are whole numbers
            QVERIFY(near(view().time().value_or(-1), moment));
        }
        QTest::mouseClick(child<QToolButton>("timelineBack"), Qt::LeftButton);
        QVERIFY(near(view().time().value_or(-1), 2));
        QTest::keyClick(&view(), Qt::Key_End);
        QVERIFY(near(view().time().value_or(-1), kMakespan));
        QTest::keyClick(&view(), Qt::Key_Left);
        QVERIFY(near(view().time().value_or(-1), kMakespan - 2)); // the last backward has begun
        QTest::keyClick(&view(), Qt::Key_Home);
        QTest::keyClick(&view(), Qt::Key_Space);
        QVERIFY(view().isPlaying());
        QTRY_VERIFY(view().time().value_or(0) > 0.05);
        QTest::mouseClick(child<QToolButton>("timelinePlay"), Qt::LeftButton);
        QVERIFY(!view().isPlaying());
    }

    void durationsAreTyped() {
        choose(QStringLiteral("1f1b"));
        // (m + p − 1)(F + B + W)
        type<QDoubleSpinBox>("timelineForward", QStringLiteral("2"));
        QVERIFY(near(picture().makespan(), 11 * 4));
        type<QDoubleSpinBox>("timelineWeight", QStringLiteral("0"));
        QVERIFY(near(picture().makespan(), 11 * 3));
        type<QSpinBox>("timelineDevices", QStringLiteral("6"));
        QVERIFY(near(picture().makespan(), 13 * 3));
        type<QSpinBox>("timelineMicroBatches", QStringLiteral("12"));
        QVERIFY(near(picture().makespan(), 17 * 3));
        QVERIFY(m_panel->figures().contains(QStringLiteral("Step 51")));
        QVERIFY(view().isFitted()); // a whole step in sight stays whole
    }

    void stageTakesItsOwnTime() {
        choose(QStringLiteral("inference"));
        QVERIFY(near(picture().makespan(), kMicroBatches + kDevices - 1));
        // A double click on a bar opens its stage's forward time.
        const QPoint where =
            view().taskRect(taskOf(picture(), Pass::Forward, 2, 4)).center().toPoint();
        QTest::mouseDClick(&view(), Qt::LeftButton, {}, where);
        auto* table = child<QTableWidget>("timelineStages");
        QCOMPARE(table->currentRow(), 2);
        QCOMPARE(table->currentColumn(), 0);
        auto* editor = table->findChild<QLineEdit*>();
        QVERIFY(editor);
        editor->selectAll();
        QTest::keyClicks(editor, QStringLiteral("3"));
        QTest::keyClick(editor, Qt::Key_Return);
        QVERIFY(m_panel->waitForIdle(kWait));
        // All wait for the slow one: the others once each, m times its 3.
        QVERIFY(near(picture().makespan(), kDevices - 1 + 3 * kMicroBatches));
        // Words are no time: the number comes back.
        table->item(1, 0)->setText(QStringLiteral("soon"));
        QVERIFY(m_panel->waitForIdle(kWait));
        QCOMPARE(table->item(1, 0)->text(), QStringLiteral("1"));
        table->item(2, 0)->setText({});
        QVERIFY(m_panel->waitForIdle(kWait));
        QVERIFY(near(picture().makespan(), kMicroBatches + kDevices - 1));
    }

    void refusesWithAReason() {
        choose(QStringLiteral("1f1b"));
        choose(QStringLiteral("dualpipe"));
        type<QSpinBox>("timelineDevices", QStringLiteral("3"));
        QVERIFY(!view().picture()); // nothing that was not asked for
        QVERIFY(view().placeholder().size() > 20);
        QVERIFY(!child<QToolButton>("timelineExport")->isEnabled());
        type<QSpinBox>("timelineDevices", QStringLiteral("4"));
        QVERIFY(view().picture());
    }

    void latestRequestWins() {
        choose(QStringLiteral("1f1b"));
        auto* box = child<QSpinBox>("timelineMicroBatches");
        for (const int count : {4000, 3000, 2000, 16}) box->setValue(count);
        QVERIFY(view().picture()); // the one before stays
        QVERIFY(view().isStale());
        QVERIFY(m_panel->waitForIdle(kWait));
        QVERIFY(!view().isStale());
        QVERIFY(near(picture().makespan(), 19 * 3));
    }

    void coloursAreChosen() {
        choose(QStringLiteral("interleaved"));
        const auto shade = [this](TaskId id) {
            const QRectF bar = view().taskRect(id);
            return view().grab().toImage().pixelColor(bar.topLeft().toPoint() + QPoint(3, 3));
        };
        const TaskId a = taskOf(picture(), Pass::Forward, 0, 0);
        const TaskId b = taskOf(picture(), Pass::Forward, 0, 6);
        const TaskId otherChunk = taskOf(picture(), Pass::Forward, 4, 0);
        QCOMPARE(shade(a), shade(b));
        QCOMPARE(shade(a), shade(otherChunk));
        m_panel->setColour(TimelineColour::MicroBatch);
        QVERIFY(m_panel->waitForIdle(kWait));
        QVERIFY(shade(a) != shade(b));
        QCOMPARE(shade(a), shade(otherChunk));
        m_panel->setColour(TimelineColour::Chunk);
        QVERIFY(m_panel->waitForIdle(kWait));
        QCOMPARE(shade(a), shade(b));
        QVERIFY(shade(a) != shade(otherChunk));
    }

    void farAndNearAgree() {
        // A column of the levels of detail is what its bars and idle times look like on average.
        const auto far = pictureOf(specOf("1f1b", 2, 20'000));
        const TimelineLane& lane = far->lanes()[0];
        const double begin = 1000, perPixel = 60.25; // some twenty pairs of bars a column
        std::vector<QRgb> columns(40);
        far->strip(lane, begin, perPixel, columns);
        for (std::size_t x = 0; x < columns.size(); ++x) {
            double red = 0;
            const double from = begin + perPixel * static_cast<double>(x);
            constexpr int kSamples = 6000;
            for (int s = 0; s < kSamples; ++s) {
                const TaskId id = far->taskAt(lane, from + perPixel * (s + 0.5) / kSamples);
                QVERIFY(id != kNoTask); // the steady state has no gaps
                red += qRed(far->colourOf(id));
            }
            QVERIFY2(std::abs(red / kSamples - qRed(columns[x])) < 3,
                     qPrintable(QString::number(x)));
        }
        std::vector<float> memory(30);
        far->memory(0, 0, far->makespan() / 30, memory);
        QCOMPARE(*std::ranges::max_element(memory), 2.0F); // min(p, m) in flight
    }

    void axisTicksAreRound() {
        const TimeAxis plain = timeAxis(0, 33, 33.0 / 900, 80, 0);
        QCOMPARE(plain.ticks.at(0).text, QStringLiteral("0"));
        QCOMPARE(plain.ticks.at(1).text, QStringLiteral("5"));
        QCOMPARE(plain.unit, QString());
        const TimeAxis small = timeAxis(0.012, 0.0123, 3e-7, 80, 1); // seconds
        QCOMPARE(small.unit, QStringLiteral("ms"));
        QCOMPARE(small.ticks.at(0).text, QStringLiteral("12.00"));
        QCOMPARE(small.ticks.at(1).text, QStringLiteral("12.05"));
    }

    void writesWhatOthersRead() {
        choose(QStringLiteral("1f1b"));
        for (const char* ending : {"svg", "png", "pdf", "csv", "json"}) {
            m_panel->exportTo(file(QStringLiteral("out.") + QLatin1String(ending)));
        }
        QVERIFY(m_panel->waitForIdle(kWait));
        const auto read = [this](const char* ending) {
            QFile in(file(QStringLiteral("out.") + QLatin1String(ending)));
            return in.open(QIODevice::ReadOnly) ? in.readAll() : QByteArray();
        };
        QJsonParseError wrong{};
        const QJsonDocument trace = QJsonDocument::fromJson(read("json"), &wrong);
        QCOMPARE(wrong.error, QJsonParseError::NoError);
        const QJsonArray events = trace.isArray()
                                      ? trace.array()
                                      : trace.object()[QStringLiteral("traceEvents")].toArray();
        QVERIFY(events.size() >= 2 * kDevices * kMicroBatches);
        const Schedule& s = picture().schedule();
        QCOMPARE(read("csv").toStdString(),
                 writeScheduleCsv(asLists(s.orders, s.program, s.timeline)));
        QXmlStreamReader svg(read("svg"));
        int texts = 0;
        while (!svg.atEnd()) {
            if (svg.readNext() == QXmlStreamReader::StartElement && svg.name() == u"text") ++texts;
        }
        QVERIFY2(!svg.hasError(), qPrintable(svg.errorString()));
        QVERIFY(texts > 2 * kDevices * kMicroBatches); // every bar has its label
        QVERIFY(QSvgRenderer(file(QStringLiteral("out.svg"))).isValid());
        const QImage png(file(QStringLiteral("out.png")));
        QCOMPARE(png.width(), 2 * std::max(800, view().width()));
        QVERIFY(read("pdf").startsWith("%PDF-"));
        QVERIFY(read("pdf").trimmed().endsWith("%%EOF"));
    }

    void saysWhyAFileCannotBeWritten() {
        choose(QStringLiteral("1f1b"));
        QString said;
        connect(m_panel.get(), &TimelinePanel::message, this,
                [&said](MessageKind kind, const QString& words) {
                    if (kind == MessageKind::Error) said = words;
                });
        m_panel->exportTo(file(QStringLiteral("no such folder/out.svg")));
        QVERIFY(m_panel->waitForIdle(kWait));
        QVERIFY(said.contains(QStringLiteral("no such folder")));
        m_panel->exportTo(file(QStringLiteral("out.bmp")));
        QVERIFY(m_panel->waitForIdle(kWait));
        QVERIFY(said.contains(QStringLiteral(".svg")));
        QVERIFY(!QFile::exists(file(QStringLiteral("out.bmp"))));
        choose(QStringLiteral("terapipe")); // slices: PyTorch's file cannot say them
        m_panel->exportTo(file(QStringLiteral("slices.csv")));
        QVERIFY(m_panel->waitForIdle(kWait));
        QVERIFY(!QFile::exists(file(QStringLiteral("slices.csv"))));
    }

    void isReadAloud() {
        choose(QStringLiteral("1f1b"));
        QAccessibleInterface* table = QAccessible::queryAccessibleInterface(&view());
        QVERIFY(table);
        QCOMPARE(table->role(), QAccessible::Table);
        QCOMPARE(table->childCount(), kDevices);
        QAccessibleInterface* row = table->child(kDevices - 1);
        const QString name = row->text(QAccessible::Name);
        // busy m (F + B) = 24; fill and drain are p − 1 forwards and backwards
        QVERIFY2(name.contains(QStringLiteral("busy 24")), qPrintable(name));
        QVERIFY2(name.contains(QStringLiteral("idle 3 (fill)")), qPrintable(name));
        QVERIFY2(name.contains(QStringLiteral("idle 6 (drain)")), qPrintable(name));
        QCOMPARE(row->childCount(), 2 * kMicroBatches);
        QAccessibleInterface* bar = row->child(1);
        QVERIFY(bar->text(QAccessible::Name).contains(QStringLiteral("3B0")));
        QVERIFY(bar->text(QAccessible::Name).contains(QStringLiteral("starts 4")));
        QCOMPARE(bar->parent(), row);
        QCOMPARE(row->indexOfChild(bar), 1);
        QVERIFY(bar->rect().isValid());
        click(taskOf(picture(), Pass::Backward, kDevices - 1, 0));
        QVERIFY(bar->state().selected);
        for (const QWidget* input : m_panel->findChildren<QWidget*>()) {
            const bool isInput = qobject_cast<const QComboBox*>(input) ||
                                 qobject_cast<const QAbstractSpinBox*>(input) ||
                                 qobject_cast<const QTableWidget*>(input);
            if (isInput)
                QVERIFY2(!input->accessibleName().isEmpty(), input->metaObject()->className());
        }
    }

    void textsAreReadable() {
        for (const bool dark : {false, true}) {
            for (int mode = 0; mode < kTimelineColours; ++mode) {
                const auto shown =
                    pictureOf(specOf("zb-v", 8, 16), {static_cast<TimelineColour>(mode), dark, 0});
                const Palette& palette = shown->palette();
                for (TaskId id = 0; id < shown->schedule().program.tasks.size(); ++id) {
                    const QColor bar(shown->colourOf(id));
                    QVERIFY(Palette::contrast(palette.textOn(bar), bar) >= 4.5);
                    QVERIFY(Palette::contrast(bar, palette.canvas) >= 1.5);
                }
            }
            const Palette& palette = dark ? Palette::dark() : Palette::light();
            for (std::size_t c = 0; c < kCauses; ++c) {
                const QColor tint = causeTint(palette, static_cast<Cause>(c));
                QVERIFY(Palette::contrast(palette.text, tint) >= 4.5);
            }
        }
    }

    void isADockOfTheWindow() {
        MainWindowOptions options;
        options.settingsFile = file(QStringLiteral("settings.ini"));
        options.document.temporaryFolder = file(QStringLiteral("unsaved")).toStdString();
        const QString session = file(QStringLiteral("s.shardlens"));
        {
            MainWindow main(file(QStringLiteral("model.json")), options);
            main.resize(1300, 900);
            main.show();
            QVERIFY(main.waitForIdle(kWait));
            auto* dock = main.findChild<QDockWidget*>(QStringLiteral("timelineDock"));
            QVERIFY(dock && dock->isHidden());
            QTest::keyClick(&main, Qt::Key_T, Qt::ControlModifier);
            QVERIFY(dock->isVisible());
            QVERIFY(main.commands().action("view.timeline")->isChecked());
            auto* box = dock->findChild<QComboBox*>(QStringLiteral("timelineSchedule"));
            box->setCurrentIndex(box->findData(QStringLiteral("zb-h1")));
            QVERIFY(main.waitForIdle(kWait));
            // (p − 1)(F + B − W) beyond the own work of 24
            QVERIFY(near(main.timeline().view().picture()->makespan(), 27));
            main.timeline().setColour(TimelineColour::Stage);
            QVERIFY(main.waitForIdle(kWait));
            main.timeline().view().setRange(3, 9);
            main.timeline().view().setTime(5);
            QVERIFY(main.saveTo(session));
            main.close();
        }
        MainWindow again(session, options);
        again.show();
        QVERIFY(again.waitForIdle(kWait));
        QVERIFY(again.findChild<QDockWidget*>(QStringLiteral("timelineDock"))->isVisible());
        const TimelineView& shown = again.timeline().view();
        QVERIFY(shown.picture());
        QVERIFY(near(shown.picture()->makespan(), 27));
        QCOMPARE(again.timeline().colour(), TimelineColour::Stage);
        QVERIFY(near(shown.begin(), 3) && near(shown.end(), 9));
        QVERIFY(near(shown.time().value_or(0), 5));
    }
};

SHARDLENS_TEST(TestTimeline)

} // namespace tst_timeline

#include "tst_timeline.moc"
