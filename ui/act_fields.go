package ui

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"net/http"
	"net/url"
	"slices"
)

// payloadFields are the fields whose values are JSON, and are not decoded.
var payloadFields = map[string]bool{"value": true, "payload": true}

// flagFields are the fields that are "yes" or missing.
var flagFields = []string{"dry_run", "interrupt_steps", "freeze_timers", "from_end"}

// paramClosed is a field that is "yes", "no", or missing: the queue stays as it is.
const paramClosed = "closed"

// normalizeFlags makes each flag "yes" or missing. In JSON, true and false mean yes and no. An empty field counts as missing.
func (f actForm) normalizeFlags() error {
	for _, name := range append([]string{paramClosed}, flagFields...) {
		switch text := f.text(name); text {
		case "yes", "true":
			f.Set(name, "yes")
		case "no", "false":
			if f.Del(name); name == paramClosed {
				f.Set(name, "no")
			}
		case "":
			f.Del(name)
		default:
			return &statusError{http.StatusBadRequest, fmt.Sprintf("The field %q is %q: use yes or no.", name, text)}
		}
	}
	return nil
}

// parseActFields returns the fields of a JSON object in the form of url.Values, as a form has them. A field that is null counts as missing.
func parseActFields(body []byte) (url.Values, error) {
	var object map[string]jsontext.Value
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, &statusError{http.StatusBadRequest, "the body is no JSON object: " + err.Error()}
	}
	fields := make(url.Values)
	for name, value := range object {
		if !slices.Contains(actFields, name) {
			return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("acts have no field %q: docs/dashboard.md lists the fields", name)}
		}
		text := string(value)
		switch kind := value.Kind(); {
		case payloadFields[name]:
		case kind == jsontext.KindNull:
			continue
		case kind == jsontext.KindString:
			if err := json.Unmarshal(value, &text); err != nil {
				return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("the field %q is no text: %v", name, err)}
			}
		case kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray:
			return nil, &statusError{http.StatusBadRequest, fmt.Sprintf("the field %q is %s: use a text, a number, true or false", name, kind)}
		}
		fields.Set(name, text)
	}
	return fields, nil
}
