package filter

import "go.uber.org/fx"

// Module provides the descriptor and the factory of this folder.
func Module() fx.Option {
	return fx.Module("item.filter",
		fx.Provide(fx.Annotate(Components, fx.ResultTags(`group:"surfin.components,flatten"`))),
		fx.Provide(fx.Annotate(Factories, fx.ResultTags(`group:"surfin.factories,flatten"`))),
	)
}
