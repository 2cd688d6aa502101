package durablecli

import (
	"net/url"
	"regexp"
	"strings"
)

// passwordKey finds a password in a connection string of keys and values.
var passwordKey = regexp.MustCompile(`(^|\s)password\s*=\s*\S`)

// hasPassword reports whether a connection string contains a password.
func hasPassword(conn string) bool {
	if !strings.Contains(conn, "://") {
		return passwordKey.MatchString(conn)
	}
	u, err := url.Parse(conn)
	if err != nil {
		return strings.Contains(conn, "@") // an unparsable text may contain a password
	}
	_, set := u.User.Password()
	return set || u.Query().Get("password") != ""
}
