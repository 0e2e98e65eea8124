package parquet

import (
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/internal/assembly"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Module adds the components to an application.
func Module() fx.Option { return assembly.Components(Components()...) }

// Components are the reader, the partitioner and the writer.
func Components() []registry.Component { return []registry.Component{reader(), partitions(), writer()} }
