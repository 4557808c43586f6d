"""Top-level domains that make a word with a dot an address. The server knows all of them; these are the common ones."""

_COUNTRIES = """
ac ad ae af ag ai al am ao aq ar as at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bv bw by bz ca cc cd
cf cg ch ci ck cl cm cn co cr cu cv cw cx cy cz de dj dk dm do dz ec ee eg er es et eu fi fj fk fm fo fr ga gb gd ge
gf gg gh gi gl gm gn gp gq gr gs gt gu gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki
km kn kp kr kw ky kz la lb lc li lk lr ls lt lu lv ly ma mc md me mg mh mk ml mm mn mo mp mq mr ms mt mu mv mw mx my
mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pl pm pn pr ps pt pw py qa re ro rs ru rw sa sb sc sd se
sg sh si sj sk sl sm sn so sr ss st su sv sx sy sz tc td tf tg th tj tk tl tm tn to tr tt tv tw tz ua ug uk us uy uz
va vc ve vg vi vn vu wf ws ye yt za zm zw
"""
_GENERIC = """
com org net info biz name pro edu gov mil int arpa aero asia cat coop jobs mobi museum post tel travel xxx
academy agency app art audio bank bar beer best bet bid bike blog bot business buzz cab cafe camera camp cards care
careers cash casino center chat cheap church city click clinic cloud club codes coffee community company computer
construction consulting contact cool credit dance date dating deals delivery dental design dev diet digital direct
directory discount doctor dog domains download earth education email energy engineering enterprises equipment estate
events exchange expert express family fan fans farm fashion film finance financial fish fit fitness flights florist
fm football foundation fun fund furniture futbol fyi gallery game games garden gift gifts gives glass global gmbh gold
golf google graphics green group guide guru health help holiday homes hospital host hosting house icu immo inc
industries ink institute insure international investments jewelry kim kitchen land law lawyer legal life lighting
limited link live llc loan lol love ltd management market marketing mba media memorial men menu moda moe mom money
moscow movie music network news ngo ninja observer one onion online ooo page paris partners parts party pet phone photo
photography photos pics pictures pink pizza place plumbing plus poker press productions promo properties pub racing
recipes red rent rentals repair report restaurant review reviews rich rip rocks run sale salon school science services
sex sexy shoes shop shopping show site ski social software solar solutions space sport store stream studio study style
support surf surgery systems tatar tax taxi team tech technology tennis theater tips tires today ton tools top tours
town toys trade trading training tube university vacations ventures vet video villas vip vision vodka vote voyage wang
watch webcam website wedding wiki win wine work works world wtf xyz yandex yoga you youtube zip zone
"""
_NATIONAL = """
рф рус москва онлайн сайт орг дети ком бел укр мкд мон срб бг ею католик қаз հայ ελ ευ 中国 中國 台灣 香港 한국 みんな
"""

TOP_LEVEL_DOMAINS = frozenset((_COUNTRIES + _GENERIC + _NATIONAL).split())
