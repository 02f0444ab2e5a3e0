"""Who may ask what. One test for each rule, against the application itself."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from journals import POOL, small_run, write
from served import PORT, TOKEN, ask, dashboard, post

from springtide.dashboard.access import Access, Asked
from springtide.dashboard.app import Dashboard

EVERYWHERE = "0.0.0.0"


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return write(tmp_path / "live.jsonl", small_run(pool=POOL, live=True))


@pytest.fixture
def local(live: Path) -> Dashboard:
    return dashboard(live)


@pytest.fixture
def public(live: Path) -> Dashboard:
    return dashboard(live, host=EVERYWHERE)


def refused(answer: httpx.Response, status: int, hint: str) -> bool:
    return answer.status_code == status and hint in answer.json()["error"]


def test_on_loopback_reading_needs_no_token(local: Dashboard) -> None:
    for path in ("/api/runs", "/api/runs/0/series", "/metrics", "/health"):
        assert ask(local, path).status_code == 200


def test_controls_need_the_token_even_on_loopback(local: Dashboard) -> None:
    assert refused(post(local, {"do": "pause"}, x_springtide_token=""), 401, "token")
    assert refused(post(local, {"do": "pause"}, x_springtide_token="wrong"), 403, "not the token")
    assert post(local, {"do": "pause"}).status_code == 202


def test_neither_a_cookie_nor_the_address_gives_leave_to_change_anything(public: Dashboard) -> None:
    cookie = f"springtide-token-{PORT}={TOKEN}"
    assert post(public, {"do": "pause"}, x_springtide_token="", cookie=cookie).status_code == 401
    answer = ask(public, f"/api/runs/0/controls?token={TOKEN}", method="POST", json={"do": "pause"})
    assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/runs/0/events", "/metrics", "/health", "/static/app.js", "/nothing"])
def test_on_any_other_address_everything_needs_the_token(public: Dashboard, path: str) -> None:
    assert refused(ask(public, path), 401, "token")
    assert refused(ask(public, path, headers={"x-springtide-token": "wrong"}), 403, "not the token")


def test_the_token_is_taken_from_a_header_or_as_prometheus_sends_it(public: Dashboard) -> None:
    assert ask(public, "/metrics", headers={"x-springtide-token": TOKEN}).status_code == 200
    assert ask(public, "/metrics", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_the_token_in_the_address_becomes_a_cookie_that_only_this_site_sends(public: Dashboard) -> None:
    answer = ask(public, f"/api/runs?token={TOKEN}")
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert ask(public, "/api/runs", headers={"cookie": cookie.partition(";")[0]}).status_code == 200
    assert refused(ask(public, "/api/runs?token=wrong"), 403, "not the token")
    assert "set-cookie" not in ask(public, "/api/runs?token=wrong").headers
    assert ask(public, "/api/runs", headers={"cookie": f"springtide-token-{PORT}=wrong"}).status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "", "user@127.0.0.1", "[", "a/b"]
)
def test_a_name_that_was_made_to_point_here_is_refused(local: Dashboard, public: Dashboard, host: str) -> None:
    assert refused(ask(local, "/api/runs", headers={"host": host}), 403, "not called")
    assert refused(ask(public, "/api/runs", headers={"host": host, "x-springtide-token": TOKEN}), 403, "not called")


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "localhost:9000", "[::1]:8765", "LOCALHOST"])
def test_loopback_goes_by_its_own_names_on_any_port(local: Dashboard, host: str) -> None:
    assert ask(local, "/api/runs", headers={"host": host}).status_code == 200


def test_an_address_that_is_bound_goes_by_its_name(live: Path) -> None:
    named = dashboard(live, host="streams.example")
    headers = {"x-springtide-token": TOKEN}
    assert ask(named, "/api/runs", base="http://streams.example:8765", headers=headers).status_code == 200
    assert ask(named, "/api/runs", base="http://other.example:8765", headers=headers).status_code == 403
    everywhere = Access(token=TOKEN, host=EVERYWHERE, port=PORT, names=frozenset({"streams.example"}))
    headers = {"host": "10.1.2.3:8765", "x-springtide-token": TOKEN}
    here = Asked(method="GET", path="/", query="", headers=headers, reached_at="10.1.2.3")
    elsewhere = Asked(method="GET", path="/", query="", headers=headers, reached_at="10.1.2.4")
    assert everywhere.refusal(here) is None
    assert everywhere.refusal(elsewhere) is not None
    by_name = Asked(method="GET", path="/", query="", headers=headers | {"host": "Streams.example"}, reached_at="10.1.2.3")
    assert everywhere.refusal(by_name) is None


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:9999", "http://localhost:8765", "null", ""])
def test_a_control_from_another_origin_is_refused(local: Dashboard, origin: str) -> None:
    assert refused(post(local, {"do": "pause"}, origin=origin), 403, "other sites")


def test_a_control_from_the_page_itself_is_taken(local: Dashboard) -> None:
    assert post(local, {"do": "pause"}, origin="http://127.0.0.1:8765", sec_fetch_site="same-origin").status_code == 202


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_nothing_is_answered_to_other_sites_but_the_page_may_be_opened_from_them(local: Dashboard, site: str) -> None:
    assert refused(ask(local, "/api/runs", headers={"sec-fetch-site": site, "sec-fetch-mode": "cors"}), 403, "other sites")
    assert refused(
        ask(local, "/static/x.js", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}), 403, "other sites"
    )
    assert refused(post(local, {"do": "pause"}, sec_fetch_site=site, sec_fetch_mode="navigate"), 403, "other sites")
    assert ask(local, "/health", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonp", ""]
)
def test_a_control_must_be_json_which_no_form_can_send(local: Dashboard, live: Path, kind: str) -> None:
    headers = {"x-springtide-token": TOKEN, "content-type": kind}
    answer = ask(local, "/api/runs/0/controls", method="POST", content=b'{"do":"pause"}', headers=headers)
    assert refused(answer, 400, "application/json")
    assert not live.with_name("live.jsonl.controls").exists()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_other_method_gets_past_the_token(local: Dashboard, method: str) -> None:
    assert ask(local, "/api/runs", method=method).status_code == 401
    headers = {"x-springtide-token": TOKEN, "content-type": "application/json"}
    assert ask(local, "/api/runs", method=method, headers=headers).status_code == 405


def test_every_answer_has_the_headers_that_keep_other_sites_out(local: Dashboard) -> None:
    for answer in (
        ask(local, "/api/runs"),
        ask(local, "/nothing"),
        ask(local, "/api/runs", headers={"host": "evil.example"}),
        post(local, {"do": "pause"}, x_springtide_token="wrong"),
    ):
        assert answer.headers["content-security-policy"].startswith("default-src 'self'")
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2f%2e%2e%2f%2e%2e%2f%2e%2e%2fetc/passwd",
        "/static//etc/passwd",
        "/static/",
        "/api/runs/0/frames/..%2f..%2fsecret",
        "/api/runs/%2fetc%2fpasswd",
        "/live.jsonl",
    ],
)
def test_no_path_leads_out_of_the_page_and_the_journal(local: Dashboard, path: str) -> None:
    answer = ask(local, path)
    assert answer.status_code in (404, 405)
    assert b"springtide.dashboard" not in answer.content
    assert b"root:" not in answer.content
