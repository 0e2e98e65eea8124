package query

import "go.uber.org/fx"

// Module provides the partitioner to an application.
func Module() fx.Option {
	return fx.Module("partition.query",
		fx.Provide(fx.Annotate(Components, fx.ResultTags(`group:"surfin.components,flatten"`))),
		fx.Provide(fx.Annotate(Factories, fx.ResultTags(`group:"surfin.factories,flatten"`))),
	)
}
