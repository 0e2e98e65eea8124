package migration

import "go.uber.org/fx"

// Module provides the tasklet to an application. Migrations that the application
// carries are values of the group "surfin.migrations", each a [Source].
func Module() fx.Option {
	return fx.Module("migration",
		fx.Provide(fx.Annotate(Components, fx.ResultTags(`group:"surfin.components,flatten"`))),
		fx.Provide(fx.Annotate(Factories, fx.ParamTags(``, `group:"surfin.migrations"`), fx.ResultTags(`group:"surfin.factories,flatten"`))),
	)
}
