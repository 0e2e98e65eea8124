package guide

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surfin-batch/surfin/internal/testdb"
	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/batchtest"
	"github.com/surfin-batch/surfin/pkg/batch/core/row"
)

// docs/howto/partitions.md shows the following text, word for word.

// Months makes a part of each month of the year that the job is run for.
type Months struct {
	Year int64 `key:"year" required:"true" main:"true" doc:"The year."`
}

func NewMonths(m Months) *Months { return &m }

func (m *Months) Partition(context.Context, *batch.View) ([]batch.Partition, error) {
	var parts []batch.Partition
	for month := time.January; month <= time.December; month++ {
		part := batch.Partition{Name: fmt.Sprintf("%d-%02d", m.Year, month), Context: &batch.ExecutionContext{}}
		for key, day := range map[string]batch.Date{
			"from": row.NewDate(int(m.Year), month, 1),
			"to":   row.NewDate(int(m.Year), month+1, 1),
		} {
			if err := part.Context.Put(key, day); err != nil {
				return nil, err
			}
		}
		parts = append(parts, part)
	}
	return parts, nil
}

var months = batch.Partitioner("months", NewMonths, batch.Part[batch.Date]("from"), batch.Part[batch.Date]("to"))

// That was it.

func TestThePartitionerOfThePageDividesTheYear(t *testing.T) {
	t.Parallel()
	text := section(t, page(t, "docs/howto/partitions.md"), "## One of your own")
	testdb.Each(t, func(t *testing.T, url string) {
		e := batchtest.New(t, batchtest.On(url), batchtest.With(months))
		e.Exec("create table sale (id bigint primary key, day date not null)")
		for i := range 400 {
			e.Exec(fmt.Sprintf("insert into sale (id, day) values (%d, '%s')", i, time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)))
		}
		r := e.Job(e.File("sales.yaml", block(t, text, "yaml")), "year=2026").Completed()
		require.EqualValues(t, 365, r.Step("copy").Counters.Write)
		e.HasRows("select part, count(*) from copied where part in ('2026-02', '2026-12') group by part order by part", "2026-02|28", "2026-12|31")
	})
}

func TestTheGoCodeOfThePartitionPageIsWhatIsTested(t *testing.T) {
	t.Parallel()
	shown := block(t, page(t, "docs/howto/partitions.md"), "go")
	source, err := os.ReadFile("partitions_test.go")
	require.NoError(t, err)
	require.True(t, strings.Contains(string(source), shown), "%s", shown)
}
