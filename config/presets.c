/* config/presets.c: presets by name, and the rules for static files and ASP.NET; see presets.h.
 * Each is YAML as a site has it: rules, and tests that show what they are for. Data; any thread.
 */
#include "config/presets.h"

#include "config/rules.h"

/* clang-format off */
static const char preset_static[] =
    "# Files by their names' endings, whatever makes the pages: kept for a week where the origin does not say, without cookies\n"
    "# either way.\n"
    "rules:\n"
    "  - name: static-assets\n"
    "    match:\n"
    "      method: [ GET, HEAD ]\n"
    "      path: [ \"/**.css\", \"/**.js\", \"/**.mjs\", \"/**.map\", \"/**.wasm\", \"/**.jpg\", \"/**.jpeg\", \"/**.png\", \"/**.gif\", \"/**.webp\",\n"
    "              \"/**.avif\", \"/**.svg\", \"/**.ico\", \"/**.bmp\", \"/**.woff\", \"/**.woff2\", \"/**.ttf\", \"/**.otf\", \"/**.eot\",\n"
    "              \"/**.mp4\", \"/**.webm\", \"/**.mp3\", \"/**.ogg\" ]\n"
    "    cookies: { drop: \"*\" }\n"
    "    cache: { default_ttl: { 200: 7d, 404: 1m }, stale_while_revalidate: 1h, stale_if_error: 7d, ignore: set-cookie }\n"
    "\n"
    "tests:\n"
    "  - name: a file is kept for a week\n"
    "    request: { url: \"http://www.example.com/a/b/site.css\", fields: { Cookie: \"session=1\" } }\n"
    "    response: { fields: { Set-Cookie: \"session=2\" } }\n"
    "    expect: { outcome: miss, stored: true, ttl: 7d, rule: static-assets }\n"
    "  - name: or as long as it says\n"
    "    request: { url: \"http://www.example.com/logo.svg\" }\n"
    "    response: { fields: { Cache-Control: \"max-age=60\" } }\n"
    "    expect: { stored: true, ttl: 1m }\n"
    "  - name: a page is not meant\n"
    "    request: { url: \"http://www.example.com/a.html\" }\n"
    "    expect: { outcome: miss, stored: false }\n";

static const char preset_aspnet[] =
    "# ASP.NET and ASP.NET Core: paths in any case are one key, as IIS has it; who is logged in goes through. A session alone\n"
    "# (ASP.NET_SessionId, .AspNetCore.Session) says nothing: pages that show what is in it must say private.\n"
    "rules:\n"
    "  - name: aspnet-tracking\n"
    "    key:\n"
    "      ignore: [ utm_*, mtm_*, hsa_*, gclid, gclsrc, dclid, gbraid, wbraid, gad_source, gad_campaignid, srsltid, _ga, _gl,\n"
    "                fbclid, igshid, msclkid, ttclid, twclid, yclid, li_fat_id, epik, mc_cid, mc_eid, mkt_tok, _hsenc, _hsmi,\n"
    "                pk_campaign, pk_kwd, pk_source, pk_medium, pk_content ]\n"
    "    cookies:\n"
    "      drop: [ _ga, _ga_*, _gid, _gat, _gat_*, _gac_*, _gcl_*, __utm*, __gads, __gpi, _fbp, _fbc, _hj*, _clck, _clsk,\n"
    "              _uet*, _pk_*, _ym_*, _ttp, __hs*, hubspotutk, _pin_unauth ]\n"
    "  - name: aspnet-case\n"
    "    key: { ignore_case: true }\n"
    "  - name: aspnet-assets\n"
    "    match:\n"
    "      method: [ GET, HEAD ]\n"
    "      path: &assets\n"
    "        [ \"/**.css\", \"/**.js\", \"/**.jpg\", \"/**.jpeg\", \"/**.png\", \"/**.gif\", \"/**.webp\", \"/**.svg\", \"/**.ico\", \"/**.woff\",\n"
    "          \"/**.woff2\", \"/**.ttf\" ]\n"
    "      ignore_case: true\n"
    "    cookies: { drop: \"*\" }\n"
    "    cache: { default_ttl: { 200: 1d } }\n"
    "  - name: aspnet-own-pages\n"
    "    match:\n"
    "      path: [ \"/account\", \"/account/**\", \"/identity/**\", \"/manage\", \"/manage/**\", \"/signin-*\", \"/signout-*\", \"/login.aspx\",\n"
    "              \"/_blazor\", \"/_blazor/**\", \"/_framework/debug/**\" ]\n"
    "      ignore_case: true\n"
    "    cache: bypass\n"
    "  # WebResource.axd and ScriptResource.axd say themselves how long; these show what happens inside\n"
    "  - name: aspnet-handlers\n"
    "    match: { path: [ \"/**trace.axd\", \"/**elmah.axd\", \"/**elmah.axd/**\" ], ignore_case: true }\n"
    "    cache: bypass\n"
    "  - name: aspnet-known\n"
    "    match:\n"
    "      cookies: [ .ASPXAUTH, .ASPXROLES, \".AspNet.ApplicationCookie*\", \".AspNet.Cookies*\", \".AspNetCore.Identity*\",\n"
    "                 \".AspNetCore.Cookies*\", \"FedAuth*\", \"Identity.*\" ]\n"
    "      not: { path: *assets, ignore_case: true }\n"
    "    cache: bypass\n"
    "\n"
    "tests:\n"
    "  - name: one key for a path in any case\n"
    "    request: { url: \"http://www.example.com/Products/List.aspx?ID=1&utm_source=x\", fields: { Cookie: \"ASP.NET_SessionId=x\" } }\n"
    "    response: { fields: { Cache-Control: \"public, max-age=60\" } }\n"
    "    expect: { outcome: miss, stored: true, ttl: 1m, key: \"www.example.com/products/list.aspx?ID=1\", rule: aspnet-case }\n"
    "  - name: who is logged in gets pages of their own\n"
    "    request: { url: \"http://www.example.com/Products/List.aspx\", fields: { Cookie: \".ASPXAUTH=x\" } }\n"
    "    response: { fields: { Cache-Control: \"public, max-age=60\" } }\n"
    "    expect: { outcome: pass, why: bypass, stored: false, rule: aspnet-known }\n"
    "  - name: with ASP.NET Core, too\n"
    "    request: { url: \"http://www.example.com/\", fields: { Cookie: \".AspNetCore.Identity.Application=x\" } }\n"
    "    expect: { outcome: pass, why: bypass }\n"
    "  - name: the login page is never kept\n"
    "    request: { url: \"http://www.example.com/ACCOUNT/Login\" }\n"
    "    expect: { outcome: pass, why: bypass, rule: aspnet-own-pages }\n"
    "  - name: nor is the trace\n"
    "    request: { url: \"http://www.example.com/app/Trace.axd?id=1\" }\n"
    "    expect: { outcome: pass, why: bypass }\n"
    "  - name: resources are, as long as they say\n"
    "    request: { url: \"http://www.example.com/WebResource.axd?d=x&t=1\" }\n"
    "    response: { fields: { Cache-Control: \"public, max-age=31536000\" } }\n"
    "    expect: { outcome: miss, stored: true, ttl: 365d, key: \"www.example.com/webresource.axd?d=x&t=1\" }\n"
    "  - name: files are kept for everybody\n"
    "    request: { url: \"http://www.example.com/Content/Site.CSS\", fields: { Cookie: \".ASPXAUTH=x\" } }\n"
    "    expect: { outcome: miss, stored: true, ttl: 1d }\n";
/* clang-format on */

const char *const rules_preset_names[] = { "wordpress", "woocommerce", "drupal", "magento",
                                           "static",    "aspnet",      NULL };
static const char *const texts[] = { preset_wordpress, preset_woocommerce, preset_drupal,
                                     preset_magento,   preset_static,      preset_aspnet };
static_assert(ARRAY_COUNT(rules_preset_names) == ARRAY_COUNT(texts) + 1, "a text for each name");

const char *rules_preset_text(struct slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        if (slice_equal(name, slice_of(rules_preset_names[i])))
            return texts[i];
    return NULL;
}
