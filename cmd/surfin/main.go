// Command surfin runs jobs written in YAML with the stock components. It leaves out metrics, traces and contrib:
// a first `go run` need not compile their libraries, which contrib/cmd/surfin has.
//
// It imports pkg/batch and the packages below it, and nothing of internal.
package main

import (
	"fmt"
	"os"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
	"github.com/surfin-batch/surfin/pkg/batch/core"
	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

func main() {
	cli.Main(slog.Module(), river.Module(), fx.Provide(fx.Annotate(refuse, fx.ResultTags(`group:"surfin.observers,flatten"`))))
}

// refuse fails where metrics or traces are configured: no job runs unobserved
// because of how its program was built.
func refuse(s settings.Settings) ([]core.Observer, error) {
	if s.Metrics.Wanted() {
		return nil, notBuilt("metrics.listen or metrics.textfile is set")
	}
	wanted, err := s.Traces.Wanted(os.Getenv)
	if wanted {
		return nil, notBuilt("traces.endpoint or an OTEL_ variable asks for traces")
	}
	return nil, err
}

func notBuilt(configured string) error {
	return fmt.Errorf("%s: this surfin has neither metrics nor traces; take the released one, "+
		"build one with `surfin build` (in a checkout: `make build`), or take the setting away", configured)
}
