package gormtx

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/schema"
)

// ErrNoMigrator is the error of AutoMigrate and all other methods of gorm's Migrator.
var ErrNoMigrator = errors.New("gorm's Migrator (AutoMigrate, CreateTable, HasTable, ...) is not supported on SQLite: " +
	"create tables with a migration or SQL")

// noMigrator refuses. A method without an error result panics, since false would be taken for the truth.
type noMigrator struct{}

var _ gorm.Migrator = noMigrator{}

func (noMigrator) CurrentDatabase() string                                 { panic(ErrNoMigrator) }
func (noMigrator) FullDataTypeOf(*schema.Field) clause.Expr                { panic(ErrNoMigrator) }
func (noMigrator) GetTypeAliases(string) []string                          { panic(ErrNoMigrator) }
func (noMigrator) HasTable(any) bool                                       { panic(ErrNoMigrator) }
func (noMigrator) HasColumn(any, string) bool                              { panic(ErrNoMigrator) }
func (noMigrator) HasConstraint(any, string) bool                          { panic(ErrNoMigrator) }
func (noMigrator) HasIndex(any, string) bool                               { panic(ErrNoMigrator) }
func (noMigrator) AutoMigrate(...any) error                                { return ErrNoMigrator }
func (noMigrator) CreateTable(...any) error                                { return ErrNoMigrator }
func (noMigrator) DropTable(...any) error                                  { return ErrNoMigrator }
func (noMigrator) RenameTable(any, any) error                              { return ErrNoMigrator }
func (noMigrator) GetTables() ([]string, error)                            { return nil, ErrNoMigrator }
func (noMigrator) TableType(any) (gorm.TableType, error)                   { return nil, ErrNoMigrator }
func (noMigrator) AddColumn(any, string) error                             { return ErrNoMigrator }
func (noMigrator) DropColumn(any, string) error                            { return ErrNoMigrator }
func (noMigrator) AlterColumn(any, string) error                           { return ErrNoMigrator }
func (noMigrator) MigrateColumn(any, *schema.Field, gorm.ColumnType) error { return ErrNoMigrator }
func (noMigrator) MigrateColumnUnique(any, *schema.Field, gorm.ColumnType) error {
	return ErrNoMigrator
}
func (noMigrator) RenameColumn(any, string, string) error     { return ErrNoMigrator }
func (noMigrator) ColumnTypes(any) ([]gorm.ColumnType, error) { return nil, ErrNoMigrator }
func (noMigrator) CreateView(string, gorm.ViewOption) error   { return ErrNoMigrator }
func (noMigrator) DropView(string) error                      { return ErrNoMigrator }
func (noMigrator) CreateConstraint(any, string) error         { return ErrNoMigrator }
func (noMigrator) DropConstraint(any, string) error           { return ErrNoMigrator }
func (noMigrator) CreateIndex(any, string) error              { return ErrNoMigrator }
func (noMigrator) DropIndex(any, string) error                { return ErrNoMigrator }
func (noMigrator) RenameIndex(any, string, string) error      { return ErrNoMigrator }
func (noMigrator) GetIndexes(any) ([]gorm.Index, error)       { return nil, ErrNoMigrator }
