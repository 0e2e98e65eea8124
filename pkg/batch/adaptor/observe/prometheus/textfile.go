package prometheus

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// textfile adds the metrics of this process to a file for node_exporter. Processes add up in it, one after
// the other or at once, so that rate and increase are right for jobs that run for a moment. Metrics that
// are true only while a process lives are not in it.
//
// It is not safe for concurrent use.
type textfile struct {
	path     string
	gatherer client.Gatherer
	written  families
}

// newTextfile returns a file at path, in an existing folder.
func newTextfile(path string, from client.Gatherer) *textfile {
	return &textfile{path: path, gatherer: from, written: families{}}
}

type families map[string]*dto.MetricFamily

// Write adds the counts since the last call. The file is replaced as a whole; PATH.lock locks out other
// processes meanwhile. A file with anything but metrics of Surfin is left alone and reported.
func (t *textfile) Write() (err error) {
	gathered, err := t.gatherer.Gather()
	if err != nil {
		return fmt.Errorf("gather metrics: %w", err)
	}
	now := families{}
	for _, f := range gathered {
		if outlives(f) {
			now[f.GetName()] = f
		}
	}
	unlock, err := lock(t.path + ".lock")
	if err != nil {
		return fmt.Errorf("metrics file: %w", err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	all, err := readFile(t.path)
	if err != nil {
		return fmt.Errorf("metrics file %s: %w", t.path, err)
	}
	for name, f := range now {
		all.add(f, t.written[name])
	}
	if err := all.replace(t.path); err != nil {
		return fmt.Errorf("metrics file: %w", err)
	}
	t.written = now
	return nil
}

func outlives(f *dto.MetricFamily) bool {
	return f.GetType() != dto.MetricType_GAUGE || f.GetName() == jobCompleted
}

func readFile(path string) (families, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return families{}, nil
	}
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("it contains no metrics and is left unchanged: %w", err)
	}
	for name := range all {
		if !strings.HasPrefix(name, "surfin_") {
			return nil, fmt.Errorf("it contains %s, which is not a Surfin metric, and is left unchanged", name)
		}
	}
	return all, nil
}

func (all families) add(now, before *dto.MetricFamily) {
	into := all[now.GetName()]
	if into == nil || into.GetType() != now.GetType() {
		into = &dto.MetricFamily{Name: now.Name, Type: now.Type}
		all[now.GetName()] = into
	}
	into.Help = now.Help
	was := byLabels(before)
	have := byLabels(into)
	for _, m := range now.GetMetric() {
		key := labelText(m)
		sum := have[key]
		if sum == nil {
			sum = &dto.Metric{Label: m.GetLabel()}
			into.Metric = append(into.Metric, sum)
		}
		switch now.GetType() { //nolint:exhaustive // we have no others
		case dto.MetricType_COUNTER:
			value := sum.GetCounter().GetValue() + m.GetCounter().GetValue() - was[key].GetCounter().GetValue()
			sum.Counter = &dto.Counter{Value: &value}
		case dto.MetricType_GAUGE: // a time: the latest counts
			value := max(sum.GetGauge().GetValue(), m.GetGauge().GetValue())
			sum.Gauge = &dto.Gauge{Value: &value}
		case dto.MetricType_HISTOGRAM:
			sum.Histogram = addHistogram(sum.GetHistogram(), m.GetHistogram(), was[key].GetHistogram())
		}
	}
}

// A sum with other buckets, of another version, starts from zero.
func addHistogram(sum, now, before *dto.Histogram) *dto.Histogram {
	bounds := func(h *dto.Histogram) (list []float64) {
		for _, b := range finite(h) {
			list = append(list, b.GetUpperBound())
		}
		return list
	}
	if sum != nil && !slices.Equal(bounds(sum), bounds(now)) {
		sum = nil
	}
	at := func(h *dto.Histogram, i int) uint64 {
		if list := finite(h); i < len(list) {
			return list[i].GetCumulativeCount()
		}
		return 0
	}
	count := sum.GetSampleCount() + now.GetSampleCount() - before.GetSampleCount()
	total := sum.GetSampleSum() + now.GetSampleSum() - before.GetSampleSum()
	out := &dto.Histogram{SampleCount: &count, SampleSum: &total}
	for i, b := range finite(now) {
		n := at(sum, i) + at(now, i) - at(before, i)
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: b.UpperBound, CumulativeCount: &n})
	}
	return out
}

func finite(h *dto.Histogram) []*dto.Bucket {
	list := h.GetBucket()
	if n := len(list); n > 0 && list[n-1].GetUpperBound() > 1e300 {
		return list[:n-1]
	}
	return list
}

func byLabels(f *dto.MetricFamily) map[string]*dto.Metric {
	all := map[string]*dto.Metric{}
	for _, m := range f.GetMetric() {
		all[labelText(m)] = m
	}
	return all
}

func labelText(m *dto.Metric) string {
	var words []string
	for _, l := range m.GetLabel() {
		words = append(words, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}

func (all families) replace(path string) error {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		slices.SortFunc(f.Metric, func(a, b *dto.Metric) int { return strings.Compare(labelText(a), labelText(b)) })
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			return err
		}
	}
	part := path + ".part"
	if err := os.WriteFile(part, text.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}
