package changes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/ports"
)

func audited(ids ...int64) (rows []ports.ChangeRow) {
	for _, id := range ids {
		rows = append(rows, ports.ChangeRow{Source: ports.ChangeOfAudit, ID: id, Execution: 1})
	}
	return rows
}

func TestARowIsFoundForAMinuteAfterOneWithAHigherNumber(t *testing.T) {
	t.Parallel()
	m, now := newMemory(), time.Now()
	require.Empty(t, m.learn(audited(1, 2, 3), now), "what was before the first look")
	require.Len(t, m.learn(audited(6, 3, 2, 1), now.Add(time.Second)), 1)
	require.Empty(t, m.learn(audited(6, 3, 2, 1), now.Add(2*time.Second)))
	require.Len(t, m.learn(audited(6, 5, 3), now.Add(50*time.Second)), 1, "5 has come late")
	m.learn(nil, now.Add(62*time.Second))
	require.EqualValues(t, 6, m.numbers[ports.ChangeOfAudit].floor, "the next look reads what is after 6")
	require.Empty(t, m.numbers[ports.ChangeOfAudit].seen)
}

func TestMoreRowsThanALookReadsAreAReset(t *testing.T) {
	t.Parallel()
	m, now := newMemory(), time.Now()
	var ids []int64
	for id := range int64(maxRows) {
		ids = append(ids, id+1)
	}
	require.Empty(t, m.learn(audited(ids...), now))
	require.EqualValues(t, maxRows-firstRows, m.numbers[ports.ChangeOfAudit].floor)
	for i := range ids {
		ids[i] += 5000
	}
	require.Equal(t, []Event{{Kind: Reset}}, m.learn(audited(ids...), now))
	require.Len(t, m.learn(audited(8000), now), 1)
	require.LessOrEqual(t, len(m.numbers[ports.ChangeOfAudit].seen), maxRows+1)
}

func TestRowsAreComparedWithWhatTheyWere(t *testing.T) {
	t.Parallel()
	m, now := newMemory(), time.Now()
	worker := func(name, mark string) ports.ChangeRow {
		return ports.ChangeRow{Source: ports.ChangeOfWorker, Name: name, Mark: mark}
	}
	step := func(id int64, mark string) ports.ChangeRow {
		return ports.ChangeRow{Source: ports.ChangeOfStep, ID: id, Step: 5, Execution: 2, Mark: mark}
	}
	progress := []Event{{Kind: Progress, Number: 5, Execution: 2}}
	require.Equal(t, progress, m.learn([]ports.ChangeRow{worker("a", "active"), step(5, "1")}, now))
	require.Empty(t, m.learn([]ports.ChangeRow{worker("a", "active"), step(5, "1")}, now))
	require.Equal(t, []Event{{Kind: Worker, Name: "a"}}, m.learn([]ports.ChangeRow{worker("a", "lost")}, now), "the end of a step is in the audit")
	require.Equal(t, []Event{{Kind: Worker, Name: "b"}, {Kind: Worker, Name: "a"}}, m.learn([]ports.ChangeRow{worker("b", "active")}, now))
	require.Equal(t, progress, m.learn([]ports.ChangeRow{worker("b", "active"), step(5, "2")}, now))
}

func TestTopicsSelectEvents(t *testing.T) {
	t.Parallel()
	all, err := ParseTopics([]string{"execution:12, step:12", "", "task,worker:host:7,schedule:nightly"})
	require.NoError(t, err)
	for e, want := range map[Event]bool{
		{Kind: Execution, Number: 12, Execution: 12}: true, {Kind: Execution, Number: 13, Execution: 13}: false,
		{Kind: Step, Number: 7, Execution: 12}: true, {Kind: Step, Number: 12, Execution: 7}: false, {Kind: Progress, Number: 7, Execution: 12}: false,
		{Kind: Task, Number: 4}: true, {Kind: Worker, Name: "host:7"}: true, {Kind: Worker, Name: "host"}: false,
		{Kind: Schedule, Name: "nightly"}: true, {Kind: Schedule, Name: "daily"}: false, {Kind: Reset}: true, {Kind: Away}: true, {Kind: Back}: true,
	} {
		require.Equal(t, want, all.matches(e), e)
	}
	for _, wrong := range []string{"tasks", "execution:", "execution:-1", "task:1.5", ":", "reset", "execution:99999999999999999999"} {
		_, err := ParseTopics([]string{wrong})
		require.Error(t, err, wrong)
	}
}
