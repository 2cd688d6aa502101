package durablecli

import (
	"crypto/rand"
	"crypto/subtle"
	"html"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard permits requests of browsers that were opened with the address that the command wrote.
//
// Each process of the machine and each page in the browser can reach a port on 127.0.0.1. The address therefore contains a token, which is exchanged
// for a cookie that only this server's own pages send. Browsers send a cookie to all ports of its host, but only to addresses below its path. The
// path is random too, so that other servers of the machine do not get the cookie. If the name of another site was made to point to 127.0.0.1 (DNS
// rebinding), the browser treats a page of that site as the same site, but sends the name of the site as the Host, which guard refuses.
type guard struct {
	next          http.Handler
	hosts         []string // without ports: a forwarded port has another number
	token, secret string   // the address contains the token, and the cookie the secret
	path          string   // of the dashboard and of the cookie, with a slash at its end
}

const cookieName = "durable-ui"

func newGuard(addr net.Addr, hosts []string, prefix string, next http.Handler) *guard {
	g := &guard{next: next, hosts: []string{"localhost", "127.0.0.1", "::1"}, token: rand.Text(), secret: rand.Text(), path: prefix + "/"}
	if tcp, ok := addr.(*net.TCPAddr); ok {
		g.hosts = append(g.hosts, tcp.IP.String())
	}
	for _, host := range hosts {
		g.hosts = append(g.hosts, strings.ToLower(host))
	}
	return g
}

// entrancePath is the path and query that exchanges the token for the cookie.
func (g *guard) entrancePath() string { return g.path + "?" + url.Values{"token": {g.token}}.Encode() }

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !g.isOwnHost(r.Host) {
		writeRefusal(w, http.StatusForbidden, "The dashboard is not served under the name "+r.Host+". Use the address that the command ui wrote, or permit the name with --allow-host.")
		return
	}
	if given := r.URL.Query().Get("token"); given != "" && r.URL.Path == g.path && secretsEqual(given, g.token) {
		http.SetCookie(w, &http.Cookie{Name: cookieName, Value: g.secret, Path: g.path, HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		http.Redirect(w, r, g.path, http.StatusSeeOther) // the token does not stay in the address
		return
	}
	if cookie, err := r.Cookie(cookieName); err != nil || !secretsEqual(cookie.Value, g.secret) {
		writeRefusal(w, http.StatusUnauthorized, "Open the whole address that the command ui wrote when it was started. An older address is void.")
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *guard) isOwnHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return slices.Contains(g.hosts, strings.ToLower(strings.Trim(host, "[]")))
}

// secretsEqual compares secrets in a time that does not depend on them.
func secretsEqual(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// writeRefusal writes a page that says why a request is not permitted.
func writeRefusal(w http.ResponseWriter, status int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte("<!doctype html><html lang=\"en\"><title>durable</title><p>" + html.EscapeString(text) + "</p></html>")) // an error is the client's, which left
}
