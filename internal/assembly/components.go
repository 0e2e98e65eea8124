package assembly

import (
	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Components adds components that need nothing of the application.
func Components(list ...registry.Component) fx.Option {
	provide := func() []registry.Component { return list }
	return fx.Provide(
		fx.Annotate(provide, fx.ResultTags(GroupDescribed)),
		fx.Annotate(provide, fx.ResultTags(GroupComponents)),
	)
}
