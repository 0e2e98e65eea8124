package operator

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/internal/place"
	"github.com/surfin-batch/surfin/internal/urlpath"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// NewPlaces returns the places of a registry with the settings of surfin.yaml.
func NewPlaces(r *registry.Registry, settings []place.Setting, secrets place.Secret) (*place.Set, error) {
	var schemes []place.Scheme
	for _, name := range r.Names(urlpath.Kind) {
		c, _ := r.Component(urlpath.Kind, name)
		schemes = append(schemes, place.Scheme{Name: name, Config: c.Config, New: func(ctx context.Context, cfg any) (place.Place, error) {
			made, err := c.New(ctx, cfg, registry.BuildContext{})
			if err != nil {
				return nil, err
			}
			of, is := made.(place.Place)
			if !is {
				return nil, fmt.Errorf("the constructor of place %s made a %T, which is not a place", name, made)
			}
			return of, nil
		}})
	}
	return place.NewSet(schemes, settings, secrets)
}
