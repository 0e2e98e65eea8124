package dberr

import (
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"
)

// MySQLCode returns the number of an error of MySQL or MariaDB, or 0.
func MySQLCode(err error) int {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return int(e.Number)
	}
	return 0
}

func isMySQL(err error, codes ...int) bool {
	code := MySQLCode(err)
	return code != 0 && slices.Contains(codes, code)
}

// mysqlClass is the class of the SQLSTATE, which is HY or 00 for many errors.
func mysqlClass(err error) string {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return string(e.SQLState[:2])
	}
	return ""
}

// EndsMySQL reports an error after which a transaction of MySQL must not go on (rule MY4): a deadlock has rolled it
// back, a lock wait only its statement.
func EndsMySQL(err error) bool { return isMySQL(err, 1205, 1213, 1020, 3101) }

func isUniqueMySQL(err error) bool { return isMySQL(err, 1062, 1169, 1586) }

func isForeignMySQL(err error) bool { return isMySQL(err, 1216, 1217, 1451, 1452) }

// MySQL and MariaDB number their CHECK differently.
func isCheckMySQL(err error) bool { return isMySQL(err, 3819, 4025, 1369) }

// A column that is left out and has no default is one, too.
func isNotNullMySQL(err error) bool { return isMySQL(err, 1048, 1364) }

func isConstraintMySQL(err error) bool {
	return isUniqueMySQL(err) || isForeignMySQL(err) || isCheckMySQL(err) || isNotNullMySQL(err) || mysqlClass(err) == "23"
}

func isInvalidMySQL(err error) bool {
	return mysqlClass(err) == "22" || isMySQL(err, 1264, 1265, 1292, 1366, 1367, 1406, 1411, 1690)
}

// isLostMySQL: 1927 is a killed connection of MariaDB, 4031 one that MySQL ended after wait_timeout.
func isLostMySQL(err error) bool {
	return errors.Is(err, mysql.ErrInvalidConn) || isMySQL(err, 1053, 1079, 1152, 1158, 1159, 1160, 1161, 1927, 4031)
}
