package gormdb

import (
	"context"
	"database/sql/driver"
	"errors"
)

type wrappedConnector struct{}

func (wrappedConnector) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("not to be connected")
}

func (wrappedConnector) Driver() driver.Driver { return wrappedDriver{} }

type wrappedDriver struct{}

func (wrappedDriver) Open(string) (driver.Conn, error) { return nil, errors.New("not to be opened") }
