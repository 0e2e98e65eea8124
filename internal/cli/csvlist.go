package cli

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/operator"
	"github.com/surfin-batch/surfin/internal/wording"
)

// Numbers without commas, durations in seconds, times in UTC.
func (env *environment) printCSV(titles []string, rows [][]string) error {
	var b strings.Builder
	w := csv.NewWriter(&b)
	if err := w.WriteAll(append([][]string{titles}, rows...)); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return env.print(b.String())
}

func (c showCommands) executionsCSV(page []operator.Execution, failedSteps bool) error {
	titles := []string{"execution", "job", "parameters", "status", "exit", "attempt", "started", "duration"}
	if failedSteps {
		titles = append(titles, "failed_step")
	}
	rows := make([][]string, 0, len(page))
	for _, e := range page {
		cells := []string{
			wording.ID(e.ID), e.JobName, wording.Parameters(e.Params.Identifying().All()), string(e.Status), e.ExitCode,
			strconv.Itoa(e.Attempt), csvTime(e.StartedAt), csvSeconds(e.Duration),
		}
		if failedSteps {
			cells = append(cells, e.FailedStep)
		}
		rows = append(rows, cells)
	}
	return c.env.printCSV(titles, rows)
}

func (c showCommands) instancesCSV(instances []operator.InstanceView) error {
	rows := make([][]string, 0, len(instances))
	for _, i := range instances {
		rows = append(rows, []string{
			fmt.Sprint(i.ID), i.JobName, wording.Parameters(i.Params.All()), strconv.Itoa(i.Attempts), wording.ID(i.Execution), string(i.Status), i.ExitCode,
		})
	}
	return c.env.printCSV([]string{"instance", "job", "parameters", "attempts", "execution", "status", "exit"}, rows)
}

func (c skipsCommands) skipsCSV(items []operator.SkipView) error {
	rows := make([][]string, 0, len(items))
	for i := range items {
		rows = append(rows, wording.SkipCells(&items[i]))
	}
	return c.env.printCSV(wording.SkipColumns(), rows)
}

func csvTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func csvSeconds(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }
