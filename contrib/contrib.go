// Package contrib has the families of components and places that the stock command leaves out, since their libraries
// take long to compile.
//
// It imports fx and the families. Programs pass its Module, or the Module of one family, to batch or cli.
package contrib

import (
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/contrib/parquet"
	"github.com/surfin-batch/surfin/contrib/s3"
)

// Module has all families.
func Module() fx.Option { return fx.Options(parquet.Module(), s3.Module()) }
