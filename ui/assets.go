package ui

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed assets/*.js assets/*.css assets/*.svg
var assetFiles embed.FS

// asset is a file of the dashboard, compressed once.
type asset struct {
	plain, compressed []byte
	kind, version     string
}

var assetTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}

// assets returns the files by their names.
var assets = sync.OnceValue(func() map[string]*asset {
	all := make(map[string]*asset)
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	for _, entry := range entries {
		text, err := assetFiles.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid, and a buffer accepts all writes
		_, _ = w.Write(text)
		_ = w.Close()
		sum := sha256.Sum256(text)
		all[entry.Name()] = &asset{text, b.Bytes(), assetTypes[path.Ext(entry.Name())], hex.EncodeToString(sum[:6])}
	}
	return all
})

// serveAsset serves a file. The address of the file contains the hash of its content, so browsers may keep the file.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	a := assets()[r.PathValue("name")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Vary", "Accept-Encoding")
	if r.URL.Query().Get("v") == a.version {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
	}
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		_, _ = w.Write(a.compressed) // an error is the client's, which left
		return
	}
	_, _ = w.Write(a.plain)
}
