package batch

import (
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/filter"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/json"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/jsonl"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/mapping"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/validate"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/files"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/keyrange"
	partquery "github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/shell"
	sqltask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/sql"
)

// stock is every component that is shipped and light. A component that brings
// a heavy library is an option of its own instead.
func stock() fx.Option {
	return fx.Options(
		csv.Module(), json.Module(), jsonl.Module(), query.Module(), table.Module(),
		filter.Module(), mapping.Module(), validate.Module(),
		count.Module(), files.Module(), keyrange.Module(), partquery.Module(),
		migration.Module(), shell.Module(), sqltask.Module(),
	)
}
