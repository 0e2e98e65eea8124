package series_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/series"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func grown(t *rapid.T, n int) []series.Sample {
	step := rapid.Int64Range(0, 5000)
	list := make([]series.Sample, n)
	var s series.Sample
	for i := range list {
		s.At += time.Duration(step.Draw(t, "ms")) * time.Millisecond
		s.Counters = s.Counters.Add(core.Counters{
			Read: step.Draw(t, "read"), Filter: step.Draw(t, "filter"), Write: step.Draw(t, "write"), ReadSkip: step.Draw(t, "skip"), Commit: 1,
		})
		list[i] = s
	}
	return list
}

// Rule OP8.
func TestSamplesStayFewAndKeepTheNewest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		chunks := grown(t, rapid.IntRange(1, 3000).Draw(t, "chunks"))
		known := map[series.Sample]bool{}
		s := series.NewSampler(time.Duration(rapid.IntRange(1, 2000).Draw(t, "every")) * time.Millisecond)
		for _, c := range chunks {
			s.Add(c.At, c.Counters)
			known[c] = true
		}
		samples := s.Samples()
		require.LessOrEqual(t, len(samples), series.Most)
		require.Equal(t, chunks[len(chunks)-1], samples[len(samples)-1])
		for i, sample := range samples {
			require.True(t, known[sample], "each is a chunk's")
			if i > 0 {
				require.LessOrEqual(t, samples[i-1].At, sample.At)
			}
		}
		stored, err := series.Decode(series.Encode(samples))
		require.NoError(t, err)
		require.Equal(t, samples, stored)
	})
}

func TestAFullSamplerDropsEverySecondSampleAndDoublesItsInterval(t *testing.T) {
	t.Parallel()
	s := series.NewSampler(time.Second)
	at := func(i int) time.Duration { return time.Duration(i) * time.Second }
	for i := range series.Most {
		s.Add(at(i), core.Counters{Commit: int64(i)})
	}
	require.Len(t, s.Samples(), series.Most)
	s.Add(at(series.Most), core.Counters{})
	samples := s.Samples()
	require.Len(t, samples, series.Most/2+1)
	require.Equal(t, at(1), samples[0].At)
	for i := 1; i < series.Most/2; i++ {
		require.Equal(t, 2*time.Second, samples[i].At-samples[i-1].At)
	}
	for i := range 100 * series.Most {
		s.Add(at(series.Most+1+i), core.Counters{})
	}
	require.LessOrEqual(t, len(s.Samples()), series.Most)
	require.Greater(t, len(s.Samples()), series.Most/2-1)
}

func TestSamplingDoesNotAllocate(t *testing.T) { // not parallel: it counts
	s := series.NewSampler(time.Millisecond)
	at := time.Duration(0)
	add := func() {
		at += time.Millisecond
		s.Add(at, core.Counters{Read: 1})
	}
	for range 2 * series.Most {
		add()
	}
	require.Zero(t, testing.AllocsPerRun(10_000, add))
}

func TestSamplesOfAnEarlierProcessComeFirst(t *testing.T) {
	t.Parallel()
	s := series.NewSampler(time.Millisecond)
	s.Add(time.Second, core.Counters{Read: 30})
	s.Add(2*time.Second, core.Counters{Read: 40})
	s.Precede([]series.Sample{{At: time.Second, Counters: core.Counters{Read: 10}}, {At: 2 * time.Second, Counters: core.Counters{Read: 20}}}, 5*time.Second)
	var got []int64
	for _, sample := range s.Samples() {
		got = append(got, int64(sample.At/time.Second), sample.Counters.Read)
	}
	require.Equal(t, []int64{1, 10, 2, 20, 6, 30, 7, 40}, got)
}

func TestStoredSamplesThatAreBrokenAreRefused(t *testing.T) {
	t.Parallel()
	whole := series.Encode([]series.Sample{{At: time.Second, Counters: core.Counters{Read: 1000}}})
	for cut := 2; cut < len(whole); cut++ {
		_, err := series.Decode(whole[:cut])
		require.Error(t, err)
	}
	_, err := series.Decode([]byte{9})
	require.ErrorContains(t, err, "version 9")
	_, err = series.Decode(append(whole, make([]byte, 9*series.Most)...))
	require.ErrorContains(t, err, "more than 240")
	none, err := series.Decode(nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestLinesAreAddedUpAndEndWithTheirCounters(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		to := from.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "took")) * time.Millisecond)
		sum := series.NewSum(from, to)
		var final core.Counters
		for range rapid.IntRange(0, 5).Draw(t, "lines") {
			line := grown(t, rapid.IntRange(1, 300).Draw(t, "samples"))
			begin := from.Add(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "begin")) * time.Millisecond)
			if room := to.Sub(begin); room < 0 {
				begin = to
			}
			for i := range line {
				line[i].At = min(line[i].At, to.Sub(begin))
			}
			sum.Add(begin, line)
			final = final.Add(line[len(line)-1].Counters)
		}
		samples := sum.Samples(to)
		require.LessOrEqual(t, len(samples), series.Most)
		require.Equal(t, final, samples[len(samples)-1].Counters)
		require.Equal(t, to.Sub(from), samples[len(samples)-1].At)
		for i := 1; i < len(samples); i++ {
			require.Less(t, samples[i-1].At, samples[i].At)
			require.LessOrEqual(t, samples[i-1].Counters.Read, samples[i].Counters.Read)
			require.LessOrEqual(t, samples[i-1].Counters.Commit, samples[i].Counters.Commit)
		}
	})
}

func TestCountersGrowEvenlyBetweenTwoSamples(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	to := from.Add(10 * time.Second)
	sum := series.NewSum(from, to)
	sum.Add(from, []series.Sample{{}, {At: 10 * time.Second, Counters: core.Counters{Read: 100}}})
	sum.Add(from.Add(2*time.Second), []series.Sample{{}, {At: 4 * time.Second, Counters: core.Counters{Read: 40}}})
	var got []int64
	for _, s := range sum.Samples(to) {
		got = append(got, s.Counters.Read)
	}
	require.Equal(t, []int64{0, 10, 20, 40, 60, 80, 100, 110, 120, 130, 140}, got)
}
