// Command surfin runs jobs written in YAML with the stock components and contrib, and is observed as its
// settings say.
//
// It imports pkg/batch and contrib.
package main

import (
	"github.com/surfin-batch/surfin/contrib"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/engine/river"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/otel"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/prometheus"
	"github.com/surfin-batch/surfin/pkg/batch/adaptor/observe/slog"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
)

func main() {
	cli.Main(slog.Module(), prometheus.Module(), otel.Module(), river.Module(), contrib.Module())
}
