package assembly

import (
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/csv"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/dedupe"
	itemfiles "github.com/surfin-batch/surfin/pkg/batch/adaptor/item/files"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/filter"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/group"
	itemhttp "github.com/surfin-batch/surfin/pkg/batch/adaptor/item/http"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/json"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/lookup"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/mapping"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/merge"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/route"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/skips"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/table"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/text"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/item/validate"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/count"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/files"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/keyrange"
	partquery "github.com/surfin-batch/surfin/pkg/batch/adaptor/partition/query"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/check"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/compare"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/fail"
	filetask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/files"
	httptask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/http"
	mailtask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/mail"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/migration"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/shell"
	sqltask "github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/sql"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/tasklet/waitfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// stock returns the light shipped components. Heavy libraries are options of their own.
func stock(sources []migration.Source) []registry.Component {
	list := slices.Concat(
		csv.Components(), json.Components(), text.Components(), itemfiles.Components(), query.Components(), route.Components(), skips.Components(), table.Components(),
		dedupe.Components(), filter.Components(), group.Components(), itemhttp.Components(), lookup.Components(), mapping.Components(), merge.Components(), validate.Components(),
		count.Components(), files.Components(), keyrange.Components(), partquery.Components(),
		check.Components(), compare.Components(), fail.Components(), filetask.Components(), httptask.Components(), mailtask.Components(), migration.Components(sources), shell.Components(), sqltask.Components(), waitfile.Components(),
	)
	for i := range list {
		list[i].StandardExits = list[i].Name != "fail"
	}
	return list
}
