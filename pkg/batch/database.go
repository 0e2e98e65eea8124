package batch

import (
	"fmt"

	"go.uber.org/fx"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
)

const groupDatabases = `group:"surfin.databases,flatten"`

// lentDatabase is a pool of the application's own, for a database's name.
type lentDatabase struct {
	name string
	lent gormdb.Lent
}

// Database makes a pool that your application has opened the database of that name; the repository's is
// "default" unless the settings change it. The settings' URL for the name is not used; their max_open
// limits how many of the pool's connections are used at once.
//
// The pool stays yours: App.Close gives its connections back and does not close it; close it after the
// App. gormdb.Lend describes the use of the connections, and the pools that are refused.
//
// For a pool that a constructor of your fx application makes, see [DatabaseFrom].
func Database[P gormdb.Pool](name string, pool P) fx.Option {
	return fx.Provide(fx.Annotate(func() []lentDatabase {
		return []lentDatabase{{name, gormdb.Lend(pool)}}
	}, fx.ResultTags(groupDatabases)))
}

// DatabaseFrom is Database with the pool that your fx application provides:
//
//	fx.Provide(NewPool), batch.DatabaseFrom[*pgxpool.Pool]("default")
//
// A hook of NewPool's that closes the pool runs after the App has stopped.
func DatabaseFrom[P gormdb.Pool](name string) fx.Option {
	return fx.Provide(fx.Annotate(func(pool P) []lentDatabase {
		return []lentDatabase{{name, gormdb.Lend(pool)}}
	}, fx.ResultTags(groupDatabases)))
}

type lentDatabases struct {
	fx.In
	List []lentDatabase `group:"surfin.databases"`
}

// configs returns the databases of the settings and the lent ones.
func (l lentDatabases) configs(s Settings) (map[string]gormdb.Config, error) {
	configs := make(map[string]gormdb.Config, len(s.Databases)+len(l.List))
	for name, d := range s.Databases {
		configs[name] = gormdb.Config{URL: d.URL, MaxOpen: d.MaxOpen, IdleInTransaction: s.Lease, FileMode: s.Files.Mode}
	}
	lent := map[string]bool{}
	for _, d := range l.List {
		if lent[d.name] {
			return nil, fmt.Errorf("database %s: it has two pools of the application", d.name)
		}
		lent[d.name] = true
		configs[d.name] = gormdb.Config{Lent: d.lent, MaxOpen: s.Databases[d.name].MaxOpen, IdleInTransaction: s.Lease}
	}
	return configs, nil
}
