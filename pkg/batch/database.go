package batch

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/fx"

	gormdb "github.com/surfin-batch/surfin/pkg/batch/adaptor/database/gorm"
)

const groupDatabases = `group:"surfin.databases,flatten"`

type lentDatabase struct {
	name string
	lent gormdb.Lent
}

// Database makes your pool the database of that name ("default" is the repository's). The settings' URL is not
// used; max_open limits the pool's connections in use.
//
// The pool stays yours: close it after the App. See gormdb.Lend.
//
// For a pool from fx, see [DatabaseFrom].
func Database[P *sql.DB | *pgxpool.Pool](name string, pool P) fx.Option {
	return fx.Provide(fx.Annotate(func() []lentDatabase {
		return []lentDatabase{{name, gormdb.Lend(pool)}}
	}, fx.ResultTags(groupDatabases)))
}

// DatabaseFrom is Database with the pool that your fx application provides:
//
//	fx.Provide(NewPool), batch.DatabaseFrom[*pgxpool.Pool]("default")
//
// A hook of NewPool's that closes the pool runs after the App has stopped.
func DatabaseFrom[P *sql.DB | *pgxpool.Pool](name string) fx.Option {
	return fx.Provide(fx.Annotate(func(pool P) []lentDatabase {
		return []lentDatabase{{name, gormdb.Lend(pool)}}
	}, fx.ResultTags(groupDatabases)))
}

type lentDatabases struct {
	fx.In
	List []lentDatabase `group:"surfin.databases"`
}

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
