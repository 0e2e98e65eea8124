package jobfile_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/surfin-batch/surfin/internal/job"
	"github.com/surfin-batch/surfin/internal/jobfile"
	"github.com/surfin-batch/surfin/pkg/batch/core"
)

func TestAnyTextSurvivesTheWayIntoAConfig(t *testing.T) {
	t.Parallel()
	reg := described(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune("${}#:!*&?'\"\\-[]|> 0ü\n\t")), rapid.Rune())).Draw(t, "text")
		if strings.Contains(text, "$${") {
			t.Skip("an escape already")
		}
		escaped := strings.ReplaceAll(text, "${", "$${")
		double := strconv.QuoteToASCII(escaped)
		single, printable := double, !strings.ContainsFunc(escaped, func(r rune) bool { return !unicode.IsGraphic(r) || r == '\u2028' || r == '\u2029' })
		if printable {
			single = "'" + strings.ReplaceAll(escaped, "'", "''") + "'"
		}
		file, err := jobfile.Parse("job.yaml", []byte("job: x\nflow:\n- step: a\n  tasklet:\n    note:\n      text: "+double+"\n      args: ["+single+"]\n      env: {A: "+double+"}\n"), reg)
		require.NoError(t, err)
		cfg := jobfile.StepConfig(file, "a").(*noteConfig)
		require.Equal(t, text, cfg.Text)
		require.Equal(t, []string{text}, cfg.Args)
		require.Equal(t, text, cfg.Env["A"])
	})
}

func TestALiteralTextIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	text := `echo ${HOME} $${x} ${1:-"a}b"} ${unclosed`
	file := parse(t, "job.yaml", "job: x\nflow:\n- step: a\n  tasklet:\n    note:\n      code: |-\n        "+text+"\n")
	require.Equal(t, text, jobfile.StepConfig(file, "a").(*noteConfig).Code)
	values, err := job.ValidateParameters(nil, nil)
	require.NoError(t, err)
	require.NoError(t, jobfile.Bind(context.Background(), file, values))
}

func TestADefaultAndTheSameValueGivenAreOneInstance(t *testing.T) {
	t.Parallel()
	reg := described(t)
	for kind, text := range map[string]string{
		"string": "007", "int": "-7", "float": "0.1", "bool": "false", "date": "2026-11-20",
		"timestamp": "2026-11-20T08:30:00Z", "duration": "1h30m0s", "path": "../x",
	} {
		file, err := jobfile.Parse("job.yaml", []byte("job: x\nparameters: {p: {type: "+kind+", default: "+text+"}}\nflow: [{step: a, tasklet: idle}]\n"), reg)
		require.NoError(t, err)
		byDefault, err := job.ValidateParameters(file.Parameters(), nil)
		require.NoError(t, err)
		given, err := job.ValidateParameters(file.Parameters(), map[string]string{"p": text})
		require.NoError(t, err)
		require.Equal(t, byDefault.Key(), given.Key(), kind)
		require.NoError(t, jobfile.Bind(context.Background(), file, given))
	}
}

func TestADefaultOfTodayIsAPresentDate(t *testing.T) {
	t.Parallel()
	file := parse(t, "job.yaml", "job: x\nparameters: {d: {type: date, default: '${today() - 1}'}, s: {type: string, default: 'on ${today()}'}}\nflow: [{step: a, tasklet: idle}]\n")
	specs := file.Parameters()
	require.IsType(t, core.Date(0), specs[0].Default)
	day := specs[0].Default.(core.Date)
	require.Equal(t, "on "+day.AddDays(1).String(), specs[1].Default)
	require.Greater(t, day.Year(), 2020)
}
