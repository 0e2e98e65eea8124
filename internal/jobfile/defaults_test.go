package jobfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/internal/testengine"
)

const withDefaults = `
job: x
defaults:
  chunk: {size: 5, isolate: bisect}
  retry: {limit: 3, errors: [deadlock], backoff: {initial: 1ms, max: 2s}}
  skip: {limit: 9, except: [unique]}
  timeout: 1h
  transaction: {isolation: serializable, timeout: 30s}
flow:
- step: own
  timeout: 2h
  transaction: {timeout: 9s}
  chunk: {size: 7, reader: apples, writer: {sink: a}, retry: {limit: 1, backoff: {max: 5s}}, skip: 2}
- {step: bare, chunk: {reader: apples, writer: {sink: a}}}
- {step: task, tasklet: note, transaction: {propagation: REQUIRES_NEW}}
- {step: idle, tasklet: idle}
- {step: outside, tasklet: note, transaction: {propagation: NOT_SUPPORTED}}
- atomic: group
  steps: [{step: inner, tasklet: note}]
`

func TestDefaultsAreMergedKeyByKey(t *testing.T) {
	t.Parallel()
	file, err := jobfile.Parse("job.yaml", []byte(withDefaults), described(t))
	require.NoError(t, err)
	for step, want := range map[string]string{
		"own": "timeout 2h0m0s, transaction {Propagation: Isolation:Serializable ReadOnly:false Timeout:9s Late:false}, size 7, bisect, " +
			"retry {Limit:1 Errors:[deadlock] Except:[] Backoff:{Initial:1ms Multiplier:2 Max:5s Jitter:0.2 Elapsed:0s}}, skip {Limit:2 Errors:[invalid_item constraint] Except:[unique]}",
		"bare": "timeout 1h0m0s, transaction {Propagation: Isolation:Serializable ReadOnly:false Timeout:30s Late:false}, size 5, bisect, " +
			"retry {Limit:3 Errors:[deadlock] Except:[] Backoff:{Initial:1ms Multiplier:2 Max:2s Jitter:0.2 Elapsed:0s}}, skip {Limit:9 Errors:[invalid_item constraint] Except:[unique]}",
		"task":    "timeout 1h0m0s, transaction {Propagation:REQUIRES_NEW Isolation:Serializable ReadOnly:false Timeout:30s Late:false}",
		"idle":    "timeout 1h0m0s, transaction {Propagation: Isolation:Default ReadOnly:false Timeout:0s Late:false}",
		"outside": "timeout 1h0m0s, transaction {Propagation:NOT_SUPPORTED Isolation:Default ReadOnly:false Timeout:0s Late:false}",
		"inner":   "timeout 1h0m0s, transaction {Propagation: Isolation:Default ReadOnly:false Timeout:0s Late:false}",
	} {
		require.Equal(t, want, jobfile.WithDefaults(file, step), step)
	}
}

func TestADefaultThatTheDatabaseLacksIsReportedWhereItIsWritten(t *testing.T) {
	t.Parallel()
	e := testengine.New(t, testdb.SQLite(t))
	for text, at := range map[string]string{
		"job: x\ndefaults: {transaction: {isolation: repeatable_read}}\nflow: [{step: a, tasklet: {sql: select 1}}]\n":                       "job.yaml:2:37: transaction: ",
		"job: x\ndefaults: {transaction: {isolation: repeatable_read}}\nflow: [{atomic: a, steps: [{step: b, tasklet: {sql: select 1}}]}]\n": "job.yaml:2:37: transaction: ",
	} {
		file, err := jobfile.Parse("job.yaml", []byte(text), shipped(t))
		require.NoError(t, err)
		_, err = file.Compile(jobfile.Deps{Provider: e.Provider, Registry: shipped(t)})
		require.ErrorContains(t, err, at)
	}
}
