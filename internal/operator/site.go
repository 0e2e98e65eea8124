package operator

import "github.com/surfin-batch/surfin/internal/operator/catalog"

// Site is the part of an application that a server in it needs, in addition to its service.
type Site struct {
	Jobs    *catalog.Catalog
	Secrets Secrets
	Paths   []string
}

// SiteOf returns the site of the application that built the service.
func SiteOf(s *Service) (Site, error) {
	jobs, err := catalog.New(s.config.Registry, s.config.Files)
	return Site{jobs, s.config.Secrets, s.config.Paths}, err
}
